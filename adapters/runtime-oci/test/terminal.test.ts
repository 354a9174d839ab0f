import type { ProcessStreams } from '@keelson/container-runtime';
import { benchTest } from './support/bench.ts';

const test = benchTest();

/** Collects the output of a terminal until it contains a text. */
function reader({ stdout }: ProcessStreams): (text: string) => Promise<string> {
  let seen = '';
  let look = () => {};
  stdout?.on('data', (chunk: Buffer) => {
    seen += chunk.toString();
    look();
  });
  return (text) =>
    new Promise((resolve) => {
      look = () => {
        if (!seen.includes(text)) return;
        resolve(seen);
        seen = seen.slice(seen.indexOf(text) + text.length);
      };
      look();
    });
}

const terminal = { stdin: true, stdout: true, stderr: false, tty: true };

test('a command with a terminal has a real one: echo, size, signals by key, exit code', async (t) => {
  const { context } = t.context;
  const id = await context.started({ kind: 'run' });
  const streams = await context.runtime.streaming.exec?.(id, { ...terminal, command: ['/bin/sh'] });
  t.truthy(streams?.stdin);
  if (!streams?.stdin) return;
  const until = reader(streams);
  streams.stdin.write('tty; echo is=$((40+2))\n');
  t.regex(await until('is=42'), /\/dev\/pts\/\d+/);
  streams.resize?.({ width: 123, height: 45 });
  await context.until('the new size', async () => {
    streams.stdin?.write('stty size; echo do"ne"\n');
    return /45 123/.test(await until('done'));
  });
  // The command prints that it runs: the process that reads the terminal determines the meaning of a key.
  streams.stdin.write('sh -c \'echo slee"ping"; exec sleep 1000\'\n');
  await until('sleeping');
  streams.stdin.write('\u0003echo back=$((1+1))\n');
  await until('back=2');
  streams.stdin.write('\nexit 7\n');
  t.deepEqual(await streams.ended, { exitCode: 7 });
  streams.close();
});

test('a command that cannot be executed is rejected, also with a terminal', async (t) => {
  const { context } = t.context;
  const id = await context.started({ kind: 'run' });
  const attempt = context.runtime.streaming.exec?.(id, { ...terminal, command: ['/no/such'] });
  await t.throwsAsync(attempt ?? Promise.resolve(), { code: 'StartFailed' });
});

test('closing the stream of a command with a terminal ends the command', async (t) => {
  const { context } = t.context;
  const id = await context.started({ kind: 'run' });
  const streams = await context.runtime.streaming.exec?.(id, { ...terminal, command: ['sleep', '1000'] });
  streams?.close();
  t.not((await streams?.ended)?.exitCode, 0);
});

test('a container with a terminal runs without a client, reads the input of clients, and reports its exit code', async (t) => {
  const { context } = t.context;
  const script =
    'echo started; while read -r line; do echo "<$line>"; [ "$line" = size ] && stty size; [ "$line" = quit ] && exit 5; done; exit 1';
  const id = await context.started(context.script(script), { tty: true, stdin: true });
  const streams = await context.runtime.streaming.attach?.(id, terminal);
  t.truthy(streams?.stdin);
  if (!streams?.stdin) return;
  const until = reader(streams);
  streams.stdin.write('hello\n');
  await until('<hello>');
  streams.resize?.({ width: 77, height: 33 });
  await context.until('the new size', async () => {
    streams.stdin?.write('size\n');
    return /33 77/.test(await until('<size>')) || /33 77/.test(await until('\n'));
  });
  streams.close();
  t.is((await context.runtime.containerStatus(id)).state, 'running', 'detaching does not stop the container');
  const again = await context.runtime.streaming.attach?.(id, terminal);
  again?.stdout?.resume();
  again?.stdin?.write('quit\n');
  t.deepEqual(await again?.ended, { exitCode: 5 });
  again?.close();
});

test('a terminal without input produces no output of its own, and the log contains the output of the container', async (t) => {
  const { run } = t.context;
  const { text, exitCode } = await run('tty && echo out; echo err >&2; exit 3', { tty: true });
  t.is(exitCode, 3);
  t.regex(text, /^\/dev\/pts\/\d+\r\nout\r\nerr/);
});

test('a container with a terminal that cannot start reports the reason', async (t) => {
  const { context } = t.context;
  const { image } = context.script('');
  const id = await context.create(await context.sandbox(), { image, command: ['/no/such'] }, { tty: true });
  await t.throwsAsync(context.runtime.startContainer(id), { code: 'StartFailed', message: /no such/ });
  t.is((await context.runtime.containerStatus(id)).reason, 'StartError');
});

test('a container with a terminal is stopped like other containers', async (t) => {
  const { context } = t.context;
  const id = await context.started({ kind: 'run' }, { tty: true });
  await context.runtime.stopContainer(id, { gracePeriodMs: 20_000 });
  t.is((await context.runtime.containerStatus(id)).exitCode, 143);
});
