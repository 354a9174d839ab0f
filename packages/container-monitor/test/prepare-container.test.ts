import { spawn } from 'node:child_process';
import {
  closeSync,
  constants,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { findTool, readStat, toolPath, tryTool } from '@keelson/container-host';
import test, { type ExecutionContext } from 'ava';
import {
  commandOf,
  environmentOf,
  exitCodeOf,
  logPathOf,
  passable,
  prepareContainer,
  StateDirectory,
  signalName,
  signalNumber,
  stagingFolder,
  terminalResizer,
  terminalsWork,
  withTerminal,
} from '../src/index.ts';
import { id, onLinux, removeState, until } from './support/keeper.ts';
import { bench, containerRecord } from './support/monitored.ts';

const config = { metadata: { name: 'c', attempt: 0 }, image: 'x' };
const hasTerminals = ['script', 'stty', 'tty'].every((name) => findTool(name) !== undefined);
if (!hasTerminals && process.env['CI'] !== undefined) throw new Error('script, stty or tty is missing');
const withTerminals = (title: string, body: (t: ExecutionContext) => Promise<void>): void => {
  if (hasTerminals) test(title, body);
  else test.skip(`${title} [not run, script, stty or tty is missing]`, body);
};

test('a command replaces the entry point and the arguments of the image, arguments only its arguments', (t) => {
  const image = { entrypoint: ['/entry'], cmd: ['a', 'b'] };
  t.deepEqual(commandOf(config, image), ['/entry', 'a', 'b']);
  t.deepEqual(commandOf({ ...config, args: ['c'] }, image), ['/entry', 'c']);
  t.deepEqual(commandOf({ ...config, command: ['/own'] }, image), ['/own']);
  t.deepEqual(commandOf({ ...config, command: ['/own'], args: ['d'] }, image), ['/own', 'd']);
  t.throws(() => commandOf(config, {}), { code: 'InvalidArgument' });
  t.throws(() => commandOf({ ...config, command: ['a\0b'] }, {}), { code: 'InvalidArgument' });
});

test('the environment of the image goes over the defaults, that of the container over both', (t) => {
  const env = [
    { name: 'B', value: 'container' },
    { name: 'C', value: 'x=y' },
  ];
  const found = environmentOf({ ...config, env }, { env: ['A=image', 'B=image', 'D='] }, [
    ['A', 'default'],
    ['E', 'default'],
  ]);
  t.deepEqual(Object.fromEntries(found), { A: 'image', B: 'container', C: 'x=y', D: '', E: 'default' });
  for (const name of ['', 'A=B', 'A\0'])
    t.throws(() => environmentOf({ ...config, env: [{ name, value: '' }] }, {}, []), { code: 'InvalidArgument' });
});

test('signals have names and numbers', (t) => {
  for (const [text, number] of Object.entries({ SIGTERM: 15, term: 15, '9': 9, 'SIGRTMIN+3': 37 }))
    t.is(signalNumber(text), number);
  for (const text of ['', 'SIGNOPE', '0', '65', 'SIGRTMIN+40'])
    t.throws(() => signalNumber(text), { code: 'InvalidArgument' });
  t.is(signalName(9), 'SIGKILL');
  t.is(exitCodeOf(null, 'SIGTERM'), 143);
  t.is(exitCodeOf(3, null), 3);
});

test('a log stays in its directory', (t) => {
  t.is(logPathOf('/logs/', 'a/b.log'), '/logs/a/b.log');
  t.is(logPathOf(undefined, 'a'), undefined);
  t.throws(() => logPathOf('/logs', '../logs-of-others/a'), { code: 'InvalidArgument' });
});

test('texts that no process can receive are rejected with their beginning', (t) => {
  const text = `${'x'.repeat(70)}\0`;
  const error = t.throws(() => commandOf({ ...config, command: [text] }, {}), { code: 'InvalidArgument' });
  t.is(error?.message, `command cannot be passed to a process: "${'x'.repeat(64)}"`);
  const env = [{ name: 'A', value: 'a\0' }];
  t.throws(() => environmentOf({ ...config, env }, {}, []), { code: 'InvalidArgument', message: /^value of A/ });
  t.is(passable('good', /bad/, 'text'), 'good');
});

test('a container without a path or a directory of logs has no log', (t) => {
  for (const [directory, path] of [
    ['/logs', undefined],
    ['/logs', ''],
    [undefined, 'a'],
  ])
    t.is(logPathOf(directory, path), undefined);
  t.is(logPathOf('/logs', 'a/../b'), '/logs/b');
  for (const path of ['.', '..', 'a/../../b'])
    t.throws(() => logPathOf('/logs', path), { code: 'InvalidArgument' }, path);
});

test('signal numbers are 1 to 64, and real-time signals are counted from the first one', (t) => {
  for (const [text, number] of Object.entries({ '1': 1, '64': 64, ' kill ': 9, sigrtmin: 34, 'RTMIN+30': 64 }))
    t.is(signalNumber(text), number, text);
  for (const text of ['SIGRTMIN+31', 'toString', 'SIGRTMIN+', '1.5', '-1'])
    t.throws(() => signalNumber(text), { code: 'InvalidArgument' }, text);
  t.deepEqual([signalName(15), signalName(0), signalName(64)], ['SIGTERM', undefined, undefined]);
});

onLinux(
  'a container is prepared with the pipes that it needs, which other users may open except the last',
  async (t) => {
    for (const [more, names] of [
      [{}, ['done', 'record.json', 'stderr', 'stdout']],
      [{ stdin: true }, ['done', 'record.json', 'stderr', 'stdin', 'stdout']],
      [{ tty: true }, ['done', 'record.json', 'stderr', 'stdin', 'stdout', 'terminal']],
    ] as const) {
      const b = await bench(t);
      const record = containerRecord(id, { config: { ...config, ...more } });
      const folder = await stagingFolder(b.context, id);
      await prepareContainer(b.context, record, folder);
      t.false(existsSync(folder));
      const prepared = b.state.container(id);
      t.deepEqual(readdirSync(prepared).sort(), names);
      t.deepEqual(JSON.parse(readFileSync(join(prepared, 'record.json'), 'utf8')), record);
      const modeOf = (name: string) => statSync(join(prepared, name)).mode & 0o777;
      t.deepEqual([modeOf('stdout'), modeOf('stderr'), modeOf('done')], [0o666, 0o666, 0o600]);
      t.true(statSync(join(prepared, 'stdout')).isFIFO());
      const again = await stagingFolder(b.context, id);
      writeFileSync(join(again, 'stdout'), '');
      await t.throwsAsync(prepareContainer(b.context, record, again), {
        code: 'Internal',
        message: /cannot create pipes/,
      });
    }
  },
);

onLinux('a monitor leads a session of its own, and nothing of an idle runtime keeps its process alive', async (t) => {
  const root = realpathSync(mkdtempSync('/tmp/keelson-idle-'));
  const monitor = `#!/bin/sh\nprintf '%s\\n' "$$" "$PWD" "$PATH" "$@" > "$1/seen.new"
mv "$1/seen.new" "$1/seen"\nexec sleep 60\n`;
  const state = new StateDirectory(root, monitor);
  const seen = () => readFileSync(join(state.run, 'seen'), 'utf8').trimEnd().split('\n');
  const module = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
  const runtime = spawn(process.execPath, [
    ...process.execArgv,
    '--input-type=module',
    '--eval',
    `import { createContainerContext, Inventory, spawnMonitor, StateDirectory } from ${module('../src/index.js')};
    import { silentLogger, systemClock } from ${JSON.stringify(import.meta.resolve('@keelson/core/runtime'))};
    const state = new StateDirectory(${JSON.stringify(root)}, ${JSON.stringify(monitor)});
    await state.prepare();
    const parts = { state, clock: systemClock, logger: silentLogger, onKeeperLost: () => {} };
    const around = createContainerContext(parts);
    await new Inventory({ around, logger: silentLogger, relistPeriodMs: 60_000 }).load(false);
    await around.keeper.ensure();
    spawnMonitor(around, '${id}', ['a b', 'c'], () => {});
    process.stdout.write('idle');`,
  ]);
  t.teardown(() => {
    runtime.kill('SIGKILL');
    if (existsSync(join(state.run, 'seen'))) process.kill(Number(seen()[0]), 'SIGKILL');
    return removeState(root);
  });
  let output = '';
  for (const stream of [runtime.stdout, runtime.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
  t.is(await new Promise((resolve) => runtime.once('close', resolve)), 0, output);
  t.is(output, 'idle');
  await until(() => existsSync(join(state.run, 'seen')));
  const [pid = '', ...rest] = seen();
  t.deepEqual(rest, ['/', toolPath, state.run, id, state.container(id), 'a b', 'c']);
  t.is(readStat(Number(pid))?.session, Number(pid), 'it outlives the runtime');
});

withTerminals('a command with a terminal has it as its input, and its exit code is that of the command', async (t) => {
  t.true(await terminalsWork());
  const [program = '', ...args] = withTerminal(['/bin/sh', '-c', 'tty; exit 3']);
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  let output = '';
  child.stdout.on('data', (chunk) => (output += String(chunk)));
  t.is(await new Promise((resolve) => child.once('close', resolve)), 3);
  t.regex(output, /^\/dev\/\S+\s*$/);
});

withTerminals('the size of a terminal is changed again and again; what is no terminal is ignored', async (t) => {
  const b = await bench(t);
  const file = join(b.state.root, 'terminal');
  const resize = terminalResizer(file);
  t.notThrows(() => resize({ height: 1, width: 1 }));
  const [program = '', ...args] = withTerminal(['/bin/sh', '-c', `tty > ${file}.new; mv ${file}.new ${file}; cat`]);
  const child = spawn(program, args, { stdio: ['pipe', 'ignore', 'ignore'] });
  t.teardown(() => child.kill('SIGKILL'));
  await until(() => existsSync(file));
  const name = readFileSync(file, 'utf8').trim();
  const isSize = async (height: number, width: number) => {
    const copy = join(b.state.root, 'size');
    const problem = await tryTool('sh', [
      '-c',
      `test "$(stty -F ${name} size)" = "${height} ${width}" && echo > ${copy}`,
    ]);
    return problem === undefined;
  };
  for (const [height, width] of [
    [33, 44],
    [55, 66],
  ] as const) {
    resize({ height: 10, width: 10 });
    resize({ height: 20, width: 20 });
    resize({ height, width });
    const deadline = Date.now() + 30_000;
    while (!(await isSize(height, width)) && Date.now() < deadline);
    t.true(await isSize(height, width), `${height} rows`);
  }
  const plain = join(b.state.root, 'plain');
  closeSync(openSync(plain, constants.O_CREAT | constants.O_WRONLY));
  writeFileSync(file, plain);
  resize({ height: 1, width: 1 });
  child.stdin.end();
  await new Promise((resolve) => child.once('close', resolve));
});
