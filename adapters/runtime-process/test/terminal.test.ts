import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { RuntimeCaseContext } from '@keelson/conformance';
import type { ContainerConfig, ProcessStreams } from '@keelson/container-runtime';
import test, { type ExecutionContext } from 'ava';
import { openProcess, processHarness, shell } from './support/process-harness.ts';

const probe = await openProcess();
const { tty, users } = probe.engine.runtime.capabilities;
await probe.dispose();
const withTerminals = tty || process.env['CI'] ? test : test.skip;
const withUsers = (tty && users) || process.env['CI'] ? test : test.skip;

async function bench(t: ExecutionContext): Promise<RuntimeCaseContext> {
  t.timeout(60_000);
  const opened = await openProcess();
  t.teardown(() => opened.dispose());
  return new RuntimeCaseContext(processHarness('process', opened.engine.runtime.capabilities), opened, () => {});
}

const terminal = { stdin: true, stdout: true, stderr: false, tty: true };
const forever = shell('sleep 1000');

/** Reads the output of a terminal up to a text. */
function reader({ stdout }: ProcessStreams): (text: string) => Promise<string> {
  let seen = '';
  let check = () => {};
  stdout?.on('data', (chunk: Buffer) => {
    seen += chunk.toString();
    check();
  });
  return (text) =>
    new Promise((resolve) => {
      check = () => {
        if (!seen.includes(text)) return;
        check = () => {};
        resolve(seen);
        seen = seen.slice(seen.indexOf(text) + text.length);
      };
      check();
    });
}

async function exec(context: RuntimeCaseContext, id: string, ...command: string[]) {
  const streams = await context.runtime.streaming.exec?.(id, { ...terminal, command });
  if (streams?.stdin === undefined) throw new Error('there is no standard input');
  return { streams, stdin: streams.stdin, until: reader(streams) };
}

async function attach(context: RuntimeCaseContext, id: string) {
  const streams = await context.runtime.streaming.attach?.(id, terminal);
  if (streams?.stdin === undefined) throw new Error('there is no standard input');
  return { streams, stdin: streams.stdin, until: reader(streams) };
}

withTerminals(
  'a command with a terminal has a real one: echo, initial and later size, signals by key, exit code',
  async (t) => {
    const context = await bench(t);
    const id = await context.started(forever);
    const { streams, stdin, until } = await exec(context, id, '/bin/sh');
    streams.resize?.({ width: 91, height: 19 });
    stdin.write('tty; echo $TERM is=$((40+2))\n');
    t.regex(await until('xterm is=42'), /echo \$TERM is=\$\(\(40\+2\)\)\r\n[\s\S]*\/dev\/pts\/\d+\r\n/);
    await context.until('the first size', async () => {
      stdin.write('stty size; echo do"ne"\n');
      return /19 91/.test(await until('done'));
    });
    // A running program is notified of the size by SIGWINCH.
    stdin.write('sh -c \'trap "stty size" WINCH; echo wai"ting"; while :; do sleep 0.05; done\'\n');
    await until('waiting');
    for (let width = 50; width <= 70; width += 1) streams.resize?.({ width, height: 30 });
    streams.resize?.({ width: 123, height: 45 });
    t.false((await until('45 123')).includes('30 69'), 'sizes that follow quickly are combined');
    stdin.write('\u0003');
    stdin.write('sh -c \'echo slee"ping"; exec sleep 1000\'\n');
    await until('sleeping');
    stdin.write('\u0003echo back=$((1+1))\n');
    await until('back=2');
    stdin.write('exit 7\n');
    t.deepEqual(await streams.ended, { exitCode: 7 });
    streams.close();
  },
);

withTerminals(
  'a command with a terminal that cannot be executed is rejected; one ended by a signal has its exit code',
  async (t) => {
    const context = await bench(t);
    const id = await context.started(forever);
    await t.throwsAsync(exec(context, id, '/no/such'), { code: 'StartFailed' } as object);
    const { streams } = await exec(context, id, '/bin/sh', '-c', 'kill -TERM $$');
    t.deepEqual(await streams.ended, { exitCode: 143 });
    const quick = await exec(context, id, 'echo', 'all of it');
    await quick.streams.ended;
    t.regex(await quick.until('of it'), /all of it/, 'a late reader receives the output');
  },
);

withTerminals('the end of the input is end of file for a command with a terminal', async (t) => {
  const context = await bench(t);
  const id = await context.started(forever);
  const { streams, stdin, until } = await exec(context, id, 'cat');
  stdin.end('last line\n');
  await until('last line\r\nlast line\r\n');
  t.deepEqual(await streams.ended, { exitCode: 0 });
});

withTerminals('closing a command with a terminal ends its whole session, and not the container', async (t) => {
  const context = await bench(t);
  const id = await context.started(forever);
  const { streams, stdin, until } = await exec(context, id, '/bin/sh', '-i');
  stdin.write('trap "" HUP; set -m; sleep 4242 & jobs; echo do"ne"\n');
  await until('done');
  streams.close();
  t.not((await streams.ended).exitCode, 0);
  await context.until(
    'the end of the background job',
    async () => (await context.exec(id, ['sh', '-c', 'ps -e -o args || true'])).indexOf('sleep 4242\n') < 0,
  );
  t.is((await context.runtime.containerStatus(id)).state, 'running');
});

withTerminals(
  'a container with a terminal receives input and sizes of attached clients, and reports its exit code',
  async (t) => {
    const context = await bench(t);
    const script =
      'tty; while read -r line; do echo "<$line>"; [ "$line" = size ] && stty size; [ "$line" = quit ] && exit 5; done; exit 1';
    const id = await context.started(shell(script), { tty: true, stdin: true, stdinOnce: true });
    const first = await attach(context, id);
    first.stdin.write('hello\n');
    await first.until('<hello>');
    first.streams.resize?.({ width: 77, height: 33 });
    await context.until('the new size', async () => {
      first.stdin.write('size\n');
      return /33 77/.test((await first.until('<size>\r\n')) + (await first.until('\r\n')));
    });
    first.streams.close();
    t.is((await context.runtime.containerStatus(id)).state, 'running', 'detaching does not stop the container');
    const again = await attach(context, id);
    again.stdin.write('quit\n');
    t.deepEqual(await again.streams.ended, { exitCode: 5 });
    again.streams.close();
  },
);

withTerminals(
  'a terminal without input stays open without output of its own; the log contains the output of the container',
  async (t) => {
    const context = await bench(t);
    const { stdout, status } = await context.output(shell('tty && echo out; echo err >&2; exit 3'), { tty: true });
    t.is(status.exitCode, 3);
    t.regex(stdout, /^\/dev\/pts\/\d+\r\nout\r\nerr\r\n$/);
    const id = await context.create(await context.sandbox(), { image: 'host', command: ['/no/such'] }, { tty: true });
    await t.throwsAsync(context.runtime.startContainer(id), { code: 'StartFailed' } as object);
    const running = await context.started(shell('sleep 1000'), { tty: true });
    await context.runtime.stopContainer(running, { gracePeriodMs: 20_000 });
    t.is((await context.runtime.containerStatus(running)).exitCode, 143);
  },
);

withUsers('a terminal belongs to the user of its container, also behind mounts', async (t) => {
  const context = await bench(t);
  const folder = await mkdtemp('/tmp/keelson-terminal-');
  await chmod(folder, 0o755);
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const config: Partial<ContainerConfig> = {
    tty: true,
    stdin: true,
    securityContext: { runAsUser: 65534, runAsGroup: 65534 },
    mounts: [{ hostPath: folder, containerPath: join(folder, 'place') }],
  };
  const script = 'echo again > "$(tty)" && id -u && test -d "$0"/place && echo seen; exec sleep 1000';
  const id = await context.started({ image: 'host', command: ['/bin/sh', '-c', script, folder] }, config);
  const { streams, until } = await exec(
    context,
    id,
    '/bin/sh',
    '-c',
    `echo own > "$(tty)"; id -u; test -d ${folder}/place && echo seen`,
  );
  await until('own\r\n65534\r\nseen');
  t.deepEqual(await streams.ended, { exitCode: 0 });
});
