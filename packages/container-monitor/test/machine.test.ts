import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { newestFirst } from '../src/container/monitored-runtime.ts';
import { Cgroups, findAccount, isId, newId, quote, RunFiles, resolveInside, StateDirectory } from '../src/index.ts';
import { LineWriter } from '../src/logs/line-writer.ts';

function folderOf(t: ExecutionContext): string {
  const folder = mkdtempSync('/tmp/keelson-machine-');
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

test('without options there are no control groups', async (t) => {
  const groups = await Cgroups.find(undefined);
  t.false(groups.has('memory'));
  t.deepEqual(await groups.create('/x', 's', 'c', {}), []);
  t.false((await Cgroups.find({ mountpoint: '/no/such/folder' })).has('memory'));
});

test('version 2: limits are written in its units, for controllers that are listed', async (t) => {
  const root = hierarchy(t, { 'cgroup.controllers': 'cpu memory io\n', 'cgroup.subtree_control': '' });
  const groups = await Cgroups.find({ mountpoint: root });
  t.deepEqual(
    (['memory', 'cpu', 'cpuset', 'pids'] as const).map((name) => groups.has(name)),
    [true, true, false, false],
  );
  const [folder = '', ...others] = groups.foldersOf('/pods/s/c');
  t.deepEqual([folder, others], [join(root, 'pods/s/c'), []]);
  const files = ['cpu.weight', 'cpu.max', 'memory.max', 'memory.swap.max', 'pids.max', 'cpuset.cpus', 'cpuset.mems'];
  mkdirSync(folder, { recursive: true });
  for (const file of files) writeFileSync(join(folder, file), '');
  const read = () => files.map((file) => readFileSync(join(folder, file), 'utf8'));
  await groups.update([folder], {
    cpuShares: 1024,
    cpuQuotaUs: 50_000,
    memoryLimitBytes: 4096,
    pidsLimit: 7,
    cpusetCpus: '0-1',
    cpusetMems: '0',
  });
  t.deepEqual(read(), ['39', '50000 100000', '4096', '0', '', '', '']);
  await groups.update([folder], {
    cpuShares: 1,
    cpuQuotaUs: -1,
    cpuPeriodUs: 1000,
    memoryLimitBytes: -1,
    pidsLimit: -1,
  });
  t.deepEqual(read(), ['1', 'max 1000', 'max', 'max', '', '', '']);
  await groups.update([folder], { cpuShares: 999_999 });
  t.is(read()[0], '10000');
});

test('groups are created below the parent of the sandbox or the default one, with the controllers of their parents', async (t) => {
  const root = hierarchy(t, { 'cgroup.controllers': 'memory pids\n', 'cgroup.subtree_control': '' });
  const groups = await Cgroups.find({ mountpoint: root });
  t.deepEqual(await groups.create('/parent', 's', 'c', {}), [join(root, 'parent/s/c')]);
  t.deepEqual(await groups.create(undefined, 's', 'c', {}), [join(root, 'keelson/s/c')]);
  t.is(readFileSync(join(root, 'cgroup.subtree_control'), 'utf8'), '+pids');
  t.true(existsSync(join(root, 'parent/s/c')));
});

test('version 1: every controller has its own hierarchy', async (t) => {
  const root = hierarchy(t, {
    'cpu/cgroup.procs': '',
    'memory/cgroup.procs': '',
    'cpuset/cgroup.procs': '',
    'cpuset/cpuset.cpus': '0-3',
    'cpuset/cpuset.mems': '0',
    'cpuset/keelson/cpuset.cpus': '\n',
    'cpuset/keelson/cpuset.mems': '\n',
    'memory/keelson/s/c/memory.limit_in_bytes': '',
    'cpu/keelson/s/c/cpu.shares': '',
    'cpu/keelson/s/c/cpu.cfs_quota_us': '',
    'cpu/keelson/s/c/cpu.cfs_period_us': '',
  });
  const groups = await Cgroups.find({ mountpoint: root });
  t.false(groups.has('pids'));
  const folders = await groups.create(undefined, 's', 'c', {
    cpuShares: 5,
    cpuQuotaUs: 6,
    cpuPeriodUs: 7,
    memoryLimitBytes: 8,
  });
  t.deepEqual(
    folders.sort(),
    ['cpu', 'cpuset', 'memory'].map((name) => join(root, name, 'keelson/s/c')),
  );
  const at = (path: string) => readFileSync(join(root, path), 'utf8');
  t.is(at('memory/keelson/s/c/memory.limit_in_bytes'), '8');
  t.deepEqual(
    ['shares', 'cfs_quota_us', 'cfs_period_us'].map((file) => at(`cpu/keelson/s/c/cpu.${file}`)),
    ['5', '6', '7'],
  );
  t.is(at('cpuset/keelson/cpuset.cpus'), '0-3');
  t.is(at('cpuset/keelson/cpuset.mems'), '0');
});

test('removal deletes the groups of a container and the empty group of its sandbox', async (t) => {
  const root = folderOf(t);
  mkdirSync(join(root, 's/c'), { recursive: true });
  const groups = await Cgroups.find(undefined);
  await groups.remove([join(root, 's/c')]);
  t.false(existsSync(join(root, 's')));
  await t.notThrowsAsync(groups.remove([join(root, 's/c')]));
});

test('a limit of 0 and a hierarchy without a folder of the container change nothing', async (t) => {
  const root = hierarchy(t, { 'cgroup.controllers': 'memory\n', 'cgroup.subtree_control': '' });
  const groups = await Cgroups.find({ mountpoint: root });
  t.deepEqual(readdirSync(root).sort(), ['cgroup.controllers', 'cgroup.subtree_control'], 'its probe is removed');
  await groups.update([join(root, 's/c')], { memoryLimitBytes: 0, pidsLimit: 0 });
  await groups.update([`${root}-of-another/s/c`], { memoryLimitBytes: 1 });
  t.deepEqual(readdirSync(root).sort(), ['cgroup.controllers', 'cgroup.subtree_control']);
  await t.throwsAsync(groups.remove([join(root, 'cgroup.controllers')]), { code: 'ENOTDIR' });
});

test('links are resolved inside the root', async (t) => {
  const root = folderOf(t);
  mkdirSync(join(root, 'etc/sub'), { recursive: true });
  symlinkSync('/etc', join(root, 'abs'));
  symlinkSync('../../../../etc/sub', join(root, 'etc/up'));
  symlinkSync('loop', join(root, 'loop'));
  t.is(await resolveInside(root, '/abs/sub'), '/etc/sub');
  t.is(await resolveInside(root, 'etc/up/x'), '/etc/sub/x');
  t.is(await resolveInside(root, '/a/./b//../c'), '/a/c');
  t.is(await resolveInside(root, '../..'), '/');
  await t.throwsAsync(resolveInside(root, 'loop'), { code: 'InvalidArgument' });
  for (let i = 1; i <= 41; i += 1) symlinkSync(i === 1 ? 'etc' : `link${i - 1}`, join(root, `link${i}`));
  t.is(await resolveInside(root, 'link40'), '/etc');
  await t.throwsAsync(resolveInside(root, 'link41'), { code: 'InvalidArgument', message: /"link41"$/ });
});

test('users and groups are found in the files of the root', async (t) => {
  const root = hierarchy(t, {
    'etc/passwd': 'root:x:0:0:r:/root:/bin/sh\napp:x:1000:1001:a:/home/app:/bin/sh\nbare:x:7:8::\n',
    'etc/group': 'root:x:0:\nstaff:x:50:app\n',
  });
  t.deepEqual(await findAccount(root, 'app'), { uid: 1000, gid: 1001, home: '/home/app' });
  t.deepEqual(await findAccount(root, '1000'), { uid: 1000, gid: 1001, home: '/home/app' });
  t.deepEqual(await findAccount(root, '4000'), { uid: 4000, gid: 0, home: '/' });
  t.deepEqual(await findAccount(root, 'app', 'staff'), { uid: 1000, gid: 50, home: '/home/app' });
  t.deepEqual(await findAccount(root, 'bare'), { uid: 7, gid: 8, home: '/' });
  t.is((await findAccount(root, 'app', '77')).gid, 77);
  await t.throwsAsync(findAccount(root, 'nobody'), { code: 'StartFailed' });
  await t.throwsAsync(findAccount(root, 'app', 'none'), { code: 'StartFailed' });
  await t.throwsAsync(findAccount(folderOf(t), 'app'), { code: 'StartFailed' });
});

test('a word of a shell is quoted', (t) => {
  t.is(quote("it's"), "'it'\\''s'");
});

test('ids are random and recognised', (t) => {
  t.true(isId(newId()));
  t.not(newId(), newId());
  for (const text of ['', 'A'.repeat(24), 'a'.repeat(23), 'a'.repeat(25)]) t.false(isId(text), text);
});

test('the state directory is completed, cleaned, and reports a reboot', async (t) => {
  const root = join(folderOf(t), 'state');
  const boot = join(folderOf(t), 'boot');
  writeFileSync(boot, 'one\n');
  const state = new StateDirectory(root, '#!/bin/sh\n', ['extra']);
  t.deepEqual(await state.prepare(boot), { rebooted: false });
  t.deepEqual(await state.prepare(boot), { rebooted: false });
  for (const folder of [state.sandboxes, state.containers, state.run, state.keeper, state.images, join(root, 'extra')])
    t.true(existsSync(folder), folder);
  t.is(readFileSync(state.monitor, 'utf8'), '#!/bin/sh\n');
  await state.confirmBoot(boot);
  t.deepEqual(await state.prepare(boot), { rebooted: false });
  writeFileSync(boot, 'two\n');
  mkdirSync(join(state.containers, '.new-x'));
  mkdirSync(state.container('kept'));
  writeFileSync(join(state.sandboxes, 'gone.stopped'), '');
  writeFileSync(join(state.sandboxes, 'there.json'), '{}');
  writeFileSync(join(state.sandboxes, 'there.stopped'), '');
  const unfinished = [state.root, state.sandboxes, state.run].map((folder) => join(folder, 'record.12-3.tmp'));
  for (const path of unfinished) writeFileSync(path, '{');
  t.deepEqual(await state.prepare(boot), { rebooted: true });
  for (const path of unfinished) t.false(existsSync(path), path);
  t.false(existsSync(join(state.containers, '.new-x')));
  t.true(existsSync(state.container('kept')));
  t.false(existsSync(join(state.sandboxes, 'gone.stopped')));
  t.true(existsSync(join(state.sandboxes, 'there.stopped')));
});

test('log lines have a time, a stream and a tag; long and unterminated lines are partial', (t) => {
  const path = join(folderOf(t), 'logs', 'c.log');
  const writer = new LineWriter(path);
  writer.write('stdout', Buffer.from('one\nt'));
  t.true(writer.hasRest);
  writer.write('stderr', Buffer.from('err\n'));
  writer.write('stdout', Buffer.from('wo\n'));
  t.false(writer.hasRest);
  writer.write('stdout', Buffer.from(`${'x'.repeat(16_384)}y\nrest`));
  writer.flush();
  t.false(writer.hasRest);
  writer.close();
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  const parts = lines.map((line) => /^(\S+) (stdout|stderr) (F|P) (.*)$/.exec(line) ?? []);
  t.deepEqual(
    parts.map(([, , stream, tag, text = '']) => [stream, tag, text.length > 10 ? text.length : text]),
    [
      ['stdout', 'F', 'one'],
      ['stderr', 'F', 'err'],
      ['stdout', 'F', 'two'],
      ['stdout', 'P', 16_384],
      ['stdout', 'F', 'y'],
      ['stdout', 'P', 'rest'],
    ],
  );
  const times = parts.map(([, time = '']) => time);
  t.deepEqual(times, [...times].sort());
  for (const time of times) t.regex(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/);
  t.true(Math.abs(Date.parse(times[0] ?? '') - Date.now()) < 60_000);
});

test('a log file is opened again after a rotation, and no path discards output', (t) => {
  const path = join(folderOf(t), 'c.log');
  const writer = new LineWriter(path);
  writer.write('stdout', Buffer.from('old\n'));
  rmSync(path);
  writer.reopen();
  writer.write('stdout', Buffer.from('new\n'));
  writer.close();
  t.regex(readFileSync(path, 'utf8'), /^\S+ stdout F new\n$/);
  const none = new LineWriter(undefined);
  t.notThrows(() => none.write('stdout', Buffer.from('x')));
  t.false(none.hasRest);
});

function runFiles(t: ExecutionContext): { files: RunFiles; folder: string } {
  const folder = mkdtempSync('/tmp/keelson-run-files-');
  t.teardown(() => rmSync(folder, { recursive: true }));
  return { files: new RunFiles(folder), folder };
}

test('an exit that a monitor wrote is its code, at the time of the file', async (t) => {
  const { files, folder } = runFiles(t);
  t.is(await files.exit('a'), undefined);
  writeFileSync(join(folder, 'a.exit'), '143\n');
  utimesSync(join(folder, 'a.exit'), 1000, 1000);
  t.deepEqual(await files.exit('a'), { exitCode: 143, finishedAt: 1_000_000 });
});

test('an exit of which more is known keeps what is known, its time included', async (t) => {
  const { files } = runFiles(t);
  const exit = { exitCode: 137, finishedAt: 5, reason: 'OOMKilled', message: 'line one\nline two' };
  await files.writeExit('a', exit);
  t.deepEqual(await files.exit('a'), exit);
  await files.writeExit('a', { exitCode: 128, reason: 'StartError' });
  const { finishedAt = 0, ...rest } = (await files.exit('a')) ?? {};
  t.deepEqual(rest, { exitCode: 128, reason: 'StartError' });
  t.true(Math.abs(finishedAt - Date.now()) < 60_000);
});

test('a damaged exit is the end of a container all the same', async (t) => {
  const { files, folder } = runFiles(t);
  writeFileSync(join(folder, 'a.exit'), 'nonsense');
  const { exitCode, reason } = (await files.exit('a')) ?? {};
  t.deepEqual([exitCode, reason], [137, 'ContainerStatusUnknown']);
});

test('a process is named by the line of its status, once that is whole', async (t) => {
  const { files, folder } = runFiles(t);
  const line = `77 (a b) c) S 1 77 77 ${'0 '.repeat(15)}4242 0`;
  writeFileSync(join(folder, 'a.pid'), line);
  t.is(await files.process('a', 'pid'), undefined);
  writeFileSync(join(folder, 'a.pid'), `${line}\n`);
  t.is((await files.process('a', 'pid'))?.identity.pid, 77);
  t.is((await files.process('a', 'pid'))?.identity.startTicks, 4242);
  utimesSync(join(folder, 'a.pid'), 1000, 1000);
  t.is((await files.process('a', 'pid'))?.at, 1_000_000);
  writeFileSync(join(folder, 'a.pid'), 'nonsense\n');
  t.is(await files.process('a', 'pid'), undefined);
});

test('a removal deletes all files of one container', async (t) => {
  const { files, folder } = runFiles(t);
  for (const kind of ['monitor', 'pid', 'failed', 'ends', 'exit', 'logged']) {
    writeFileSync(join(folder, `a.${kind}`), '');
    writeFileSync(join(folder, `b.${kind}`), ' why \n');
  }
  await files.remove('a');
  t.deepEqual(readdirSync(folder).length, 6);
  t.is(await files.failure('b'), 'why');
  t.is(await files.failure('a'), undefined);
  t.deepEqual([await files.isLogged('a'), await files.isLogged('b')], [false, true]);
});

test('of things made in the same millisecond the later one comes first', (t) => {
  const items = [
    { createdAt: 1, name: 'a' },
    { createdAt: 2, name: 'b' },
    { createdAt: 2, name: 'c' },
  ];
  t.deepEqual(
    newestFirst(items).map(({ name }) => name),
    ['c', 'b', 'a'],
  );
});
