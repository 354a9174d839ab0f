import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import { listeningLogger, temporaryDirectory } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { MachineError } from '../../../src/base/machine-error.ts';
import { ProgramError, runProgram } from '../../../src/base/run-program.ts';
import { type KernelDefaultsOptions, keepKernelDefaults } from '../../../src/startup/process/kernel-defaults.ts';
import { takeLock } from '../../../src/startup/process/lock-file.ts';
import { setMaxOpenFiles, setOomScoreAdj } from '../../../src/startup/process/own-limits.ts';
import { guardLoops } from '../../../src/startup/process/uncaught-errors.ts';

const onLinux = process.platform === 'linux' ? test : test.skip;

const wanted = {
  'vm/overcommit_memory': '1',
  'vm/panic_on_oom': '0',
  'kernel/panic': '10',
  'kernel/panic_on_oops': '1',
  'kernel/keys/root_maxkeys': '1000000',
  'kernel/keys/root_maxbytes': '25000000',
};

/** A directory of settings with the layout of /proc/sys. */
async function kernel(t: ExecutionContext, settings: Readonly<Record<string, string>>): Promise<string> {
  const root = await temporaryDirectory(t);
  for (const [name, value] of Object.entries(settings)) {
    await mkdir(join(root, name, '..'), { recursive: true });
    await writeFile(join(root, name), `${value}\n`);
  }
  return root;
}

const settings = (root: string, options: Partial<KernelDefaultsOptions> = {}): KernelDefaultsOptions => ({
  ...{ root, recordFile: join(root, 'record.json'), protect: false, logger: silentLogger },
  ...options,
});

/** The current values of settings. */
const values = (root: string, ...names: string[]) =>
  Promise.all(names.map(async (name) => (await readFile(join(root, name), 'utf8')).trim()));

test('--protect-kernel-defaults: every setting that differs is named, and none is changed', async (t) => {
  const root = await kernel(t, { ...wanted, 'vm/overcommit_memory': '0', 'kernel/panic': '1' });
  await rm(join(root, 'vm/panic_on_oom'));
  await t.throwsAsync(keepKernelDefaults(settings(root, { protect: true })), {
    instanceOf: MachineError,
    message:
      '--protect-kernel-defaults: settings of the kernel differ: vm.overcommit_memory is 0, not 1; ' +
      'vm.panic_on_oom is missing, not 0; kernel.panic is 1, not 10',
  });
  t.is(await readFile(join(root, 'kernel/panic'), 'utf8'), '1\n');
  await t.notThrowsAsync(keepKernelDefaults(settings(await kernel(t, wanted), { protect: true })));
});

test('without --protect-kernel-defaults settings that differ are set, and failures are logged', async (t) => {
  const root = await kernel(t, { ...wanted, 'vm/overcommit_memory': '0' });
  await rm(join(root, 'kernel/panic'));
  await rm(join(root, 'kernel/panic_on_oops'));
  await mkdir(join(root, 'kernel/panic_on_oops'));
  await writeFile(join(root, 'vm/panic_on_oom'), '1\n');
  const logger = listeningLogger();
  await keepKernelDefaults(settings(root, { logger }));
  t.is(await readFile(join(root, 'vm/overcommit_memory'), 'utf8'), '1');
  t.is(await readFile(join(root, 'vm/panic_on_oom'), 'utf8'), '0');
  await t.throwsAsync(readFile(join(root, 'kernel/panic')), { code: 'ENOENT' }, 'a kernel without it gets none');
  t.deepEqual(logger.lines, [], 'changes are no warnings');
});

test('changed kernel settings are restored at the end, except those that another process changed', async (t) => {
  const root = await kernel(t, {
    ...wanted,
    'vm/overcommit_memory': '0',
    'kernel/panic': '1',
    'kernel/panic_on_oops': '0',
  });
  const logger = listeningLogger();
  const restore = await keepKernelDefaults(settings(root, { logger }));
  t.deepEqual(await values(root, 'vm/overcommit_memory', 'kernel/panic', 'kernel/panic_on_oops'), ['1', '10', '1']);
  await writeFile(join(root, 'kernel/panic'), '60\n');
  await restore();
  t.deepEqual(await values(root, 'vm/overcommit_memory', 'kernel/panic', 'kernel/panic_on_oops'), ['0', '60', '0']);
  t.is(logger.infos.filter((message) => message === 'a kernel setting was changed').length, 5);
  t.true(logger.infos.includes('a kernel setting was changed by another process and is not restored'));
  await t.throwsAsync(readFile(join(root, 'record.json')), { code: 'ENOENT' });
});

test('settings of a killed agent are restored by the next one, unless the machine was restarted', async (t) => {
  const root = await kernel(t, { ...wanted, 'vm/overcommit_memory': '2', 'kernel/random/boot_id': 'a' });
  await keepKernelDefaults(settings(root));
  const restore = await keepKernelDefaults(settings(root));
  t.deepEqual(await values(root, 'vm/overcommit_memory'), ['1']);
  await restore();
  t.deepEqual(await values(root, 'vm/overcommit_memory'), ['2']);
  await keepKernelDefaults(settings(root));
  await writeFile(join(root, 'kernel/random/boot_id'), 'b\n');
  await (await keepKernelDefaults(settings(root)))();
  t.deepEqual(await values(root, 'vm/overcommit_memory'), ['1'], 'the machine has it from its own configuration');
  await writeFile(join(root, 'record.json'), '{"boot":');
  const logger = listeningLogger();
  await (await keepKernelDefaults(settings(root, { logger })))();
  t.regex(logger.lines[0]?.message ?? '', /^the record of changed kernel settings is damaged/);
});

onLinux('a lock file is locked until it is released, and a waiting process is noticed', async (t) => {
  t.timeout(30_000);
  const path = join(await temporaryDirectory(t), 'lock');
  const { signal } = new AbortController();
  const first = await takeLock({ path, watch: true, clock: systemClock, signal });
  const other = spawn('flock', ['--exclusive', path, 'echo', 'mine'], { stdio: ['ignore', 'pipe', 'ignore'] });
  t.teardown(() => other.kill('SIGKILL'));
  let output = '';
  other.stdout.on('data', (chunk) => (output += String(chunk)));
  await first?.wanted;
  t.is(output, '');
  const ended = once(other, 'close');
  await first?.release();
  await ended;
  t.is(output, 'mine\n');
  await first?.release();
});

onLinux('the deletion of a lock file counts as a request of another process', async (t) => {
  t.timeout(30_000);
  const path = join(await temporaryDirectory(t), 'lock');
  const lock = await takeLock({ path, watch: true, clock: systemClock, signal: new AbortController().signal });
  await rm(path);
  await lock?.wanted;
  await lock?.release();
  t.pass();
});

onLinux('the wait for a lock can be aborted, and a file that cannot be locked is an error', async (t) => {
  const path = join(await temporaryDirectory(t), 'lock');
  const held = await takeLock({ path, watch: false, clock: systemClock, signal: new AbortController().signal });
  const controller = new AbortController();
  const waiting = takeLock({ path, watch: false, clock: systemClock, signal: controller.signal });
  controller.abort();
  t.is(await waiting, undefined);
  await held?.release();
  const nowhere = takeLock({
    path: join(path, 'x'),
    watch: false,
    clock: systemClock,
    signal: new AbortController().signal,
  });
  await t.throwsAsync(nowhere, { instanceOf: MachineError, message: /--lock-file: .* cannot be locked: .*/ });
});

test('for limits that the system does not allow a warning is logged, and the allowed limit is used', async (t) => {
  const directory = await temporaryDirectory(t);
  await writeFile(
    join(directory, 'limits'),
    'Max open files            1024                 4096                 files     \n',
  );
  await mkdir(join(directory, 'oom_score_adj'));
  const calls: string[] = [];
  const own = {
    directory,
    pid: 7,
    run: async (program: string, words: readonly string[]) => {
      calls.push([program, ...words].join(' '));
      if (calls.length === 1) throw new ProgramError('prlimit: Operation not permitted', 1, '');
      return Buffer.alloc(0);
    },
  };
  const logger = listeningLogger();
  await setMaxOpenFiles(9999, own, logger);
  t.deepEqual(calls, ['prlimit --pid 7 --nofile=9999:9999', 'prlimit --pid 7 --nofile=4096:4096']);
  await setOomScoreAdj(-999, own, logger);
  t.like(logger.lines[0], { fields: { wanted: 9999, limit: '4096' } });
  t.like(logger.lines[1], { fields: { wanted: -999 } });
  t.regex(logger.lines[1]?.message ?? '', /^--oom-score-adj/);
});

test('uncaught errors are logged; with --really-crash-for-testing they end the process', (t) => {
  const outlet = new EventEmitter();
  const logger = listeningLogger();
  const unguard = guardLoops(outlet, false, logger);
  outlet.emit('uncaughtException', new Error('one'));
  outlet.emit('unhandledRejection', new Error('two'));
  t.deepEqual(
    logger.lines.map(({ fields }) => String(fields['err'])),
    ['Error: one', 'Error: two'],
  );
  unguard();
  guardLoops(outlet, true, logger);
  t.is(outlet.listenerCount('uncaughtException') + outlet.listenerCount('unhandledRejection'), 0);
});

test('the result of a program contains its output, its failure, or that it does not exist', async (t) => {
  t.is((await runProgram('cat', [], Buffer.from('in'))).toString(), 'in');
  const failure = await t.throwsAsync(runProgram('sh', ['-c', 'echo out; echo bad >&2; exit 3']), {
    instanceOf: ProgramError,
  });
  t.like(failure, { message: 'sh: bad', exitCode: 3, stdout: 'out\n' });
  await t.throwsAsync(runProgram('sh', ['-c', 'kill -9 $$']), { message: 'sh: signal SIGKILL' });
  await t.throwsAsync(runProgram('/no/such/program', []), { message: /ENOENT/ });
});

test.serial('a program that does not exist leaves no timer that keeps this process alive', async (t) => {
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
  const before = timers();
  await t.throwsAsync(runProgram('/no/such/program', []));
  t.is(timers(), before);
});
