import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { findProgram } from '@keelson/test-support';
import anyTest, { type ExecutionContext } from 'ava';
import { lastMessage } from '../src/binary/oci-binary.ts';
import { createOciRuntime } from '../src/index.ts';
import { elfMachine } from '../src/native/machine-code.ts';
import { nativePrograms } from '../src/native/programs.ts';
import { buildImages, image, missing } from './support/busybox-image.ts';

const test = anyTest;
const asRoot = missing.length === 0 && process.getuid?.() === 0 ? test : test.skip;

async function scratch(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp('/tmp/keelson-oci-binary-');
  t.teardown(() => rm(folder, { recursive: true }));
  return folder;
}

function script(path: string, text: string): string {
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, 0o755);
  return path;
}

asRoot(
  'a missing binary, one that cannot be executed, and a program that is no OCI runtime are rejected with the reason',
  async (t) => {
    const folder = await scratch(t);
    const create = (binary: string) => createOciRuntime({ stateDirectory: join(folder, 'state'), binary });
    await t.throwsAsync(create('/no/such/runc'), {
      code: 'Unsupported',
      message: /cannot execute .*"\/no\/such\/runc"/,
    });
    await t.throwsAsync(create('no-such-runc'), { code: 'Unsupported', message: /no "no-such-runc" in/ });
    writeFileSync(join(folder, 'plain'), '');
    await t.throwsAsync(create(join(folder, 'plain')), { code: 'Unsupported', message: /cannot execute/ });
    await t.throwsAsync(create('/bin/true'), { code: 'Unsupported', message: /is not that of an OCI runtime/ });
    t.false(existsSync(join(folder, 'state')), 'no state was created');
  },
);

asRoot('crun is rejected where cgroups of both versions have controllers', async (t) => {
  const folder = await scratch(t);
  const mountpoint = join(folder, 'cgroup');
  mkdirSync(join(mountpoint, 'unified'), { recursive: true });
  writeFileSync(join(mountpoint, 'unified/cgroup.controllers'), 'hugetlb misc\n');
  const binary = script(join(folder, 'crun'), 'echo crun version 1.8.1');
  const attempt = createOciRuntime({ stateDirectory: join(folder, 'state'), binary, cgroups: { mountpoint } });
  await t.throwsAsync(attempt, {
    code: 'Unsupported',
    message: /crun does not support hybrid cgroups: hugetlb, misc on version 2/,
  });
});

asRoot('a binary that cannot run containers is rejected with its message', async (t) => {
  const folder = await scratch(t);
  const text = `case $* in *--version*) echo fakec version 1.0 ;; *run*) while [ "$1" != --log ]; do shift; done
    echo '{"level":"error","msg":"no room at the inn"}' >> "$2"; exit 1 ;; esac`;
  const attempt = createOciRuntime({
    stateDirectory: join(folder, 'state'),
    binary: script(join(folder, 'fakec'), text),
  });
  await t.throwsAsync(attempt, {
    code: 'Unsupported',
    message: 'fakec cannot run containers on this machine: no room at the inn',
  });
});

asRoot('the configured binary is called, with a root of its own and the expected arguments', async (t) => {
  t.timeout(60_000);
  const folder = await scratch(t);
  const images = buildImages();
  t.teardown(() => images.remove());
  const log = join(folder, 'argv');
  const binary = script(join(folder, 'logging'), `echo "$@" >> ${log}\nexec ${findProgram('runc')} "$@"`);
  const parent = `/${basename(folder)}`;
  const engine = await createOciRuntime({
    stateDirectory: join(folder, 'state'),
    binary,
    imageSources: [images.sources],
    cgroups: { parent },
  });
  const { runtime } = engine;
  const { runtimeName, runtimeVersion } = await runtime.version();
  t.is(runtimeName, 'runc');
  t.regex(runtimeVersion, /^\d+\.\d+/);
  await engine.images.pullImage(image);
  const sandboxId = await runtime.runPodSandbox({ metadata: { name: 'p', namespace: 'd', uid: 'u', attempt: 0 } });
  const id = await runtime.createContainer(sandboxId, {
    metadata: { name: 'c', attempt: 0 },
    image,
    command: ['sleep', '1000'],
  });
  await runtime.startContainer(id);
  t.is((await runtime.execSync(id, { command: ['true', '--help-me'] })).exitCode, 0);
  await runtime.updateContainerResources?.(id, { cpuShares: 128 });
  await runtime.removePodSandbox(sandboxId);
  await runtime[Symbol.asyncDispose]();
  const calls = readFileSync(log, 'utf8').trim().split('\n');
  t.is(calls.shift(), '--version');
  const root = join(folder, 'state/oci');
  for (const call of calls) t.true(call.startsWith(`--root ${root} `), call);
  const own = calls
    .filter((call) => call.includes(id))
    .map((call) => call.replace(/^--root \S+ (--log \S+ --log-format json )?/, ''));
  const container = join(folder, 'state/containers', id);
  t.is(own[0], `run --detach --bundle ${container} --pid-file ${container}/pid ${id}`);
  t.regex(own[1] ?? '', new RegExp(`^exec --detach --pid-file ${container}/exec-\\S+/pid ${id} true --help-me$`));
  t.is(own[2], `update --resources ${container}/update.json ${id}`);
  t.is(own[3], `delete --force ${id}`);
  for (const hierarchy of execFileSync('ls', ['/sys/fs/cgroup'], { encoding: 'utf8' }).trim().split('\n'))
    spawnSync('rmdir', [join('/sys/fs/cgroup', hierarchy, parent)]);
});

test('the last error message of a binary is read from logs of both formats', (t) => {
  t.is(lastMessage('{"level":"warning","msg":"a"}\n{"level":"error","msg":"b \\"c\\""}\n'), 'b "c"');
  t.is(lastMessage('time="x" level=error msg="cannot \\"do\\" it"'), 'cannot "do" it');
  t.is(lastMessage('plain words\n'), 'plain words');
});

test('the reaper reports the status of a program and its orphans, which do not inherit the report file', async (t) => {
  const folder = await scratch(t);
  const reaper = join(folder, 'reaper');
  writeFileSync(reaper, nativePrograms().reaper, { mode: 0o755 });
  const text = 'echo "$0 $1"; [ -e /proc/self/fd/3 ] && echo open; (sleep 0.2; exit 7) & (sleep 0.1; exit 9) & exit 3';
  const { output, status } = spawnSync(reaper, ['/bin/sh', '-c', text, 'word one', "it's"], {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  t.is(String(output[1]), "word one it's\n");
  const statuses = String(output[3])
    .trim()
    .split('\n')
    .map((line) => Number.parseInt(line.slice(8), 16));
  t.deepEqual(
    [...statuses].sort((a, b) => a - b),
    [9 << 8, 3 << 8, 7 << 8].sort((a, b) => a - b),
  );
  t.is(status, 0);
  const absent = spawnSync(reaper, ['/no/such/program'], { stdio: ['ignore', 'pipe', 'pipe', 'pipe'] });
  t.is(Number.parseInt(String(absent.output[3]).trim().slice(8), 16), 127 << 8);
});

test('the holder runs until it is killed, and exits immediately with an argument', async (t) => {
  const folder = await scratch(t);
  const holder = join(folder, 'holder');
  writeFileSync(holder, nativePrograms().holder, { mode: 0o755 });
  t.is(spawnSync(holder, ['end']).status, 0);
  t.is(spawnSync(holder, [], { timeout: 300, killSignal: 'SIGKILL' }).signal, 'SIGKILL');
});

test('programs are executables of this processor architecture, others are rejected', (t) => {
  for (const [name, machine] of Object.entries(elfMachine)) {
    for (const program of Object.values(nativePrograms(name))) {
      t.is(program.toString('latin1', 0, 4), '\x7fELF');
      t.is(program.readUInt16LE(18), machine);
      t.is(program.readBigUInt64LE(64 + 32), BigInt(program.length));
    }
  }
  t.throws(() => nativePrograms('mips'), { code: 'Unsupported' });
});
