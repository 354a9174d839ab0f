import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import {
  cgroupFoldersOf,
  cgroupMembers,
  findHierarchies,
  findTool,
  isAlive,
  listProcesses,
  parseStat,
  ranOutOfMemory,
  readCgroupUsage,
  readCommandLine,
  readIfPresent,
  readStat,
  removeEmptyCgroup,
  removeIfPresent,
  removeUnfinished,
  replaceFile,
  residentBytes,
  signalProcess,
  systemCgroupFiles,
  tool,
  tryTool,
  writeAtomically,
} from '../src/index.ts';

/** A process id that no process can have. */
const deadPid = 0x7fff_fff0;

function folderOf(t: ExecutionContext): string {
  const folder = mkdtempSync('/tmp/keelson-host-');
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function hierarchy(t: ExecutionContext, files: Record<string, string>): string {
  const root = folderOf(t);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(root, path, '..'), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

test('members, usage and out-of-memory kills of a cgroup are read from the first hierarchy that counts them', async (t) => {
  const root = hierarchy(t, {
    'two/cgroup.procs': '3\n4\n',
    'one/cgroup.procs': '4\n5\n',
    'two/memory.events': 'low 0\noom_kill 0\n',
    'two/memory.current': '1000\n',
    'two/memory.stat': 'anon 1\ninactive_file 300\npgfault 8\npgmajfault 9\n',
    'two/cpu.stat': 'usage_usec 7\nuser_usec 3\n',
    'two/pids.current': 'max\n',
    'one/memory.usage_in_bytes': '500\n',
    'one/memory.stat': 'inactive_file 1\nrss 4\ntotal_inactive_file 600\ntotal_rss 5\n',
    'one/cpuacct.usage': '123\n',
    'one/pids.current': '2\n',
    'killed/memory.events': 'oom 1\noom_kill 2\n',
    'killed1/memory.oom_control': 'oom_kill_disable 0\noom_kill 1\n',
  });
  const at = (...names: string[]) => names.map((name) => join(root, name));
  t.deepEqual((await cgroupMembers(at('two', 'one'))).sort(), [3, 4, 5]);
  t.false(await ranOutOfMemory(at('two', 'one')));
  t.true(await ranOutOfMemory(at('two', 'killed')));
  t.true(await ranOutOfMemory(at('killed1')));
  t.deepEqual((await readCgroupUsage(at('none', 'two'))).memory, {
    ...{ usageBytes: 1000, workingSetBytes: 700, rssBytes: 1, pageFaults: 8n, majorPageFaults: 9n },
  });
  const version1 = await readCgroupUsage(at('one', 'two'));
  t.deepEqual(version1.memory, { usageBytes: 500, workingSetBytes: 0, rssBytes: 5 }, 'of the cgroup and its children');
  t.deepEqual([version1.cpu, version1.processes], [{ usageCoreNanoseconds: 123n }, 2]);
  t.deepEqual((await readCgroupUsage(at('two'))).cpu, { usageCoreNanoseconds: 7000n });
  t.deepEqual(await readCgroupUsage(at('none')), {});
});

test('an empty cgroup is removed from every hierarchy, one in use from none', async (t) => {
  const root = hierarchy(t, { 'memory/cgroup.procs': '', 'other/cgroup.procs': '' });
  for (const name of ['memory/a/b', 'other/a']) mkdirSync(join(root, name), { recursive: true });
  await removeEmptyCgroup(root, '/a');
  t.deepEqual(
    [readdirSync(join(root, 'memory')), readdirSync(join(root, 'other'))],
    [['a', 'cgroup.procs'], ['cgroup.procs']],
  );
  await t.notThrowsAsync(removeEmptyCgroup(root, '/missing'));
});

test('a controller that cannot be enabled is an error, unless the caller tolerates it', async (t) => {
  const root = hierarchy(t, { 'cgroup.controllers': 'memory pids\n', 'cgroup.subtree_control': 'memory' });
  const busy = async (path: string) => {
    throw Object.assign(new Error(`busy: ${path}`), { code: 'EBUSY' });
  };
  const { used } = await findHierarchies(root, { ...systemCgroupFiles, write: busy });
  t.deepEqual(
    used.map(({ version, controllers }) => [version, ...controllers]),
    [[2, 'memory', 'pids']],
  );
  await t.throwsAsync(used[0]!.make('/a'), { name: 'CgroupError', message: /^controller pids could not be enabled/ });
  await t.throwsAsync(used[0]!.make('/a', 'ENOENT'), { name: 'CgroupError' });
  await used[0]!.make('/a/b', 'EBUSY');
  t.true(statSync(join(root, 'a/b')).isDirectory());
});

test('the cgroup folders of a process are those of its hierarchies, version 2 last', async (t) => {
  const lines = readFileSync('/proc/self/cgroup', 'utf8').trim().split('\n');
  const folders = await cgroupFoldersOf(process.pid, '/mount');
  t.is(folders.length, lines.length);
  t.true(folders.every((folder) => folder.startsWith('/mount')));
  await t.throwsAsync(cgroupFoldersOf(deadPid, '/mount'));
});

test('a stat line is parsed behind its last parenthesis', (t) => {
  const line = `7 (a) b (c) S 2 3 4 5 6 7 10 11 12 13 100 20 3 4 ${'0 '.repeat(4)}99 1 2`;
  t.deepEqual(parseStat(line), {
    pid: 7,
    startTicks: 99,
    state: 'S',
    parent: 2,
    session: 4,
    cpuTicks: 127,
    minorFaults: 10,
    majorFaults: 12,
  });
  t.is(parseStat('7 a S 1'), undefined);
  t.is(parseStat(''), undefined);
});

test('a process is identified by id and start time', (t) => {
  const own = parseStat(readFileSync('/proc/self/stat', 'latin1'));
  t.truthy(own);
  if (own === undefined) return;
  t.true(isAlive(own));
  t.false(isAlive({ ...own, startTicks: own.startTicks + 1 }));
  t.false(isAlive({ pid: deadPid, startTicks: 1 }));
  t.is(readStat(deadPid), undefined);
  t.true(listProcesses().some(({ pid }) => pid === process.pid));
  t.true(readCommandLine(process.pid).length > 1);
  t.deepEqual(readCommandLine(deadPid), []);
  t.true(residentBytes(process.pid) > 1 << 20);
  t.is(residentBytes(deadPid), 0);
  t.notThrows(() => signalProcess(deadPid, 'SIGTERM'));
  t.throws(() => signalProcess(process.pid, 'SIGNOPE' as 'SIGTERM'));
});

test('files are replaced atomically', async (t) => {
  const path = join(folderOf(t), 'file');
  t.is(await readIfPresent(path), undefined);
  await writeAtomically(path, 'one');
  await Promise.all([writeAtomically(path, 'two'), writeAtomically(path, 'two')]);
  t.is(await readIfPresent(path), 'two');
  writeFileSync(`${path}.${deadPid}-1.tmp`, 'thr');
  await removeUnfinished(join(path, '..'));
  t.deepEqual(readdirSync(join(path, '..')), ['file'], 'only the unfinished file is removed');
  await removeIfPresent(path);
  await t.notThrowsAsync(removeIfPresent(path));
  await t.throwsAsync(readIfPresent(join(path, '..')), { code: 'EISDIR' });
  await t.throwsAsync(removeIfPresent(join(path, '..')));
});

test('a durable file is replaced in a folder that is created, and only its owner can read it', async (t) => {
  const path = join(folderOf(t), 'a/b/file');
  await replaceFile(path, 'one');
  await replaceFile(path, 'two');
  t.is(await readIfPresent(path), 'two');
  t.is(statSync(path).mode & 0o777, 0o600);
  t.deepEqual(readdirSync(join(path, '..')), ['file'], 'no temporary file is left');
});

test('programs of the host are found and run', async (t) => {
  t.is(findTool('keelson-no-such-program'), undefined);
  t.throws(() => tool('keelson-no-such-program'), { code: 'Unsupported' });
  t.regex(tool('sh'), /^\/.*\/sh$/);
  t.is(await tryTool('true', []), undefined);
  t.is(await tryTool('sh', ['-c', 'echo first >&2; echo last >&2; exit 1']), 'last');
});
