import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type RuntimeCase, refused } from '../case-context.ts';

const sh = (text: string) => ['/bin/sh', '-c', text];

export const execCases: readonly RuntimeCase[] = [
  {
    id: 'exec.output-and-exit-code',
    title: 'both output streams and the exit code of a command are returned separately, and not in the log',
    requires: ['shell'],
    isCommon: true,
    async run({ runtime, started }) {
      const id = await started({ kind: 'run' });
      const result = await runtime.execSync(id, { command: sh('echo out; echo err >&2; exit 3') });
      assert.equal(Buffer.from(result.stdout).toString(), 'out\n');
      assert.equal(Buffer.from(result.stderr).toString(), 'err\n');
      assert.equal(result.exitCode, 3);
      assert.equal((await runtime.containerStatus(id)).state, 'running');
    },
  },
  {
    id: 'exec.environment',
    title: 'a command has the environment, the working directory and the user of the container',
    requires: ['shell', 'builtinImage'],
    isCommon: true,
    async run({ started, exec, script, harness }) {
      const { otherUser, capabilities } = harness;
      const securityContext =
        otherUser && capabilities.users ? { runAsUser: otherUser.uid, runAsGroup: otherUser.gid } : {};
      const env = [{ name: 'GREETING', value: "it's me" }];
      const id = await started(script('sleep 1000'), { env, workingDir: '/usr', securityContext });
      assert.equal(await exec(id, sh('echo "$GREETING"; pwd')), "it's me\n/usr\n");
      if (securityContext.runAsUser !== undefined)
        assert.equal(await exec(id, ['id', '-u']), `${securityContext.runAsUser}\n`);
    },
  },
  {
    id: 'exec.mounts',
    title: 'a command has the mounts of the container',
    requires: ['shell', 'mounts'],
    isCommon: true,
    async run({ started, exec, scratch, script }) {
      const mounts = [{ hostPath: await scratch(), containerPath: '/tmp/keelson-suite-exec' }];
      const id = await started(script('echo seen > /tmp/keelson-suite-exec/f; sleep 1000'), { mounts });
      await readUntilPresent(join(mounts[0]?.hostPath ?? '', 'f'));
      assert.equal(await exec(id, ['cat', '/tmp/keelson-suite-exec/f']), 'seen\n');
    },
  },
  {
    id: 'exec.arguments-are-verbatim',
    title: 'arguments of a command are not interpreted by a shell',
    requires: ['shell'],
    isCommon: true,
    async run({ started, exec }) {
      const args = ['a b', '', '$HOME', "it's", '*', '\n'];
      assert.equal(
        await exec(await started({ kind: 'run' }), ['printf', '<%s>', ...args]),
        args.map((arg) => `<${arg}>`).join(''),
      );
    },
  },
  {
    id: 'exec.needs-a-running-container',
    title: 'commands run in running containers only',
    isCommon: true,
    async run({ runtime, commonSandbox, create, started, waitFor }) {
      await refused(runtime.execSync('no-such-container', { command: ['true'] }), 'NotFound');
      const created = await create(await commonSandbox(), { kind: 'run' });
      await refused(runtime.execSync(created, { command: ['true'] }), 'InvalidState');
      const ended = await started({ kind: 'exit', code: 0 });
      await waitFor(ended, 'exited');
      await refused(runtime.execSync(ended, { command: ['true'] }), 'InvalidState');
    },
  },
  {
    id: 'exec.no-such-command',
    title: 'a command that does not exist is rejected, or ends with 126 or 127',
    requires: ['shell'],
    isCommon: true,
    async run({ runtime, started }) {
      const id = await started({ kind: 'run' });
      const attempt = runtime.execSync(id, { command: ['/no/such/command'] });
      const code = await attempt.then(
        ({ exitCode }) => exitCode,
        (error: { code?: string }) => error.code,
      );
      assert([126, 127, 'StartFailed'].includes(code ?? ''), `${code}`);
    },
  },
  {
    id: 'exec.timeout-kills',
    title: 'a command that exceeds its timeout is an error, and is killed',
    requires: ['shell'],
    isCommon: true,
    async run({ runtime, started, scratch }) {
      const file = join(await scratch(), 'ticks');
      const id = await started({ kind: 'run' });
      const begin = performance.now();
      const command = sh(`while :; do sleep 0.05; echo x >> ${file}; done`);
      // On a busy machine a command may need longer to start.
      for (let execTimeoutMs = 500; !existsSync(file); execTimeoutMs *= 3) {
        await refused(runtime.execSync(id, { command, execTimeoutMs }), 'DeadlineExceeded');
        assert(performance.now() - begin < 15_000);
      }
      const size = (await readFile(file, 'utf8')).length;
      await new Promise((resolve) => setTimeout(resolve, 300));
      assert((await readFile(file, 'utf8')).length <= size + 2, 'it was killed');
      assert.equal((await runtime.containerStatus(id)).state, 'running');
    },
  },
  {
    id: 'exec.ends-with-its-container',
    title: 'a command ends with its container',
    requires: ['shell'],
    isCommon: true,
    async run({ runtime, started, scratch }) {
      const file = join(await scratch(), 'ticks');
      const id = await started({ kind: 'run' });
      const pending = runtime
        .execSync(id, { command: sh(`while :; do sleep 0.05; echo x >> ${file}; done`) })
        .catch(() => undefined);
      await readUntilPresent(file);
      await runtime.stopContainer(id, { gracePeriodMs: 0 });
      await pending;
      const size = (await readFile(file, 'utf8')).length;
      await new Promise((resolve) => setTimeout(resolve, 300));
      assert.equal((await readFile(file, 'utf8')).length, size);
    },
  },
  {
    id: 'exec.large-output',
    title: 'output beyond the limit is discarded, and the command still ends',
    requires: ['shell'],
    isCommon: true,
    async run({ runtime, started }) {
      const id = await started({ kind: 'run' });
      const whole = await runtime.execSync(id, { command: sh('head -c 3000000 /dev/zero') });
      assert.equal(whole.stdout.length, 3_000_000);
      const cut = await runtime.execSync(id, {
        command: sh('head -c 3000000 /dev/zero; echo done >&2'),
        maxOutputBytes: 1000,
      });
      assert.equal(cut.stdout.length, 1000);
      assert.equal(Buffer.from(cut.stderr).toString(), 'done\n');
      assert.equal(cut.exitCode, 0);
    },
  },
  {
    id: 'exec.leftovers-do-not-hold-the-call',
    title: 'a command with a background process ends when the command itself ends',
    requires: ['shell'],
    isCommon: true,
    async run({ runtime, started }) {
      const id = await started({ kind: 'run' });
      const begin = performance.now();
      const { stdout } = await runtime.execSync(id, { command: sh('sleep 100 & echo done') });
      assert.equal(Buffer.from(stdout).toString(), 'done\n');
      assert(performance.now() - begin < 15_000);
    },
  },
  {
    id: 'exec.many-at-once',
    title: 'twenty concurrent commands do not mix their output',
    requires: ['shell'],
    isCommon: true,
    async run({ started, exec }) {
      const id = await started({ kind: 'run' });
      const numbers = Array.from({ length: 20 }, (_, index) => index);
      assert.deepEqual(
        await Promise.all(numbers.map((number) => exec(id, sh(`echo ${number}`)))),
        numbers.map((number) => `${number}\n`),
      );
    },
  },
  {
    id: 'exec.streams',
    title: 'a command with streams reads its input and ends at end of file',
    requires: ['shell', 'exec'],
    isCommon: true,
    async run({ runtime, started }) {
      const id = await started({ kind: 'run' });
      const request = { command: sh('cat; echo bye >&2; exit 5'), stdin: true, stdout: true, stderr: true, tty: false };
      const streams = await runtime.streaming.exec?.(id, request);
      assert(streams?.stdin && streams.stdout && streams.stderr);
      const [stdout, stderr] = [collect(streams.stdout), collect(streams.stderr)];
      streams.stdin.write('hello ');
      streams.stdin.end('there');
      assert.deepEqual(await streams.ended, { exitCode: 5 });
      assert.deepEqual([await stdout, await stderr], ['hello there', 'bye\n']);
      streams.close();
    },
  },
  {
    id: 'exec.closing-ends-the-command',
    title: 'closing the streams of a command ends it, and not the container',
    requires: ['shell', 'exec'],
    isCommon: true,
    async run({ runtime, started }) {
      const id = await started({ kind: 'run' });
      const request = { command: sh('sleep 1000'), stdin: false, stdout: true, stderr: false, tty: false };
      const streams = await runtime.streaming.exec?.(id, request);
      assert(streams);
      assert.equal(streams.stdin, undefined);
      streams.close();
      streams.close();
      assert.notEqual((await streams.ended).exitCode, 0);
      assert.equal((await runtime.containerStatus(id)).state, 'running');
    },
  },
  {
    id: 'attach.output-and-input',
    title: 'an attached client receives later output and writes to standard input, repeatedly',
    requires: ['shell', 'attach'],
    isCommon: true,
    async run({ runtime, started, script }) {
      const id = await started(script('while read -r line; do echo "got $line"; [ "$line" = quit ] && exit 7; done'), {
        stdin: true,
      });
      for (const word of ['one', 'two']) {
        const streams = await runtime.streaming.attach?.(id, { stdin: true, stdout: true, stderr: false, tty: false });
        assert(streams?.stdin && streams.stdout);
        const line = firstLine(streams.stdout);
        streams.stdin.write(`${word}\n`);
        assert.equal(await line, `got ${word}\n`);
        streams.close();
      }
      assert.equal((await runtime.containerStatus(id)).state, 'running', 'detaching leaves it alone');
      const last = await runtime.streaming.attach?.(id, { stdin: true, stdout: true, stderr: true, tty: false });
      last?.stdout?.resume();
      last?.stderr?.resume();
      last?.stdin?.write('quit\n');
      assert.deepEqual(await last?.ended, { exitCode: 7 });
      last?.close();
    },
  },
  {
    id: 'attach.input-once',
    title: 'with stdinOnce, the end of the first attached input is end of file for the container',
    requires: ['shell', 'attach', 'logs'],
    isCommon: true,
    async run({ runtime, commonSandbox, started, script, waitFor }) {
      const id = await started(script('cat; exit 4'), { stdin: true, stdinOnce: true }, await commonSandbox());
      const streams = await runtime.streaming.attach?.(id, { stdin: true, stdout: false, stderr: false, tty: false });
      streams?.stdin?.end('text');
      assert.equal((await waitFor(id, 'exited')).exitCode, 4);
      streams?.close();
    },
  },
];

async function collect(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

function firstLine(stream: NodeJS.ReadableStream): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    stream.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      if (text.includes('\n')) resolve(text);
    });
  });
}

async function readUntilPresent(path: string): Promise<void> {
  for (let rounds = 0; rounds < 2000; rounds += 1) {
    if ((await readFile(path, 'utf8').catch(() => '')) !== '') return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.fail(`no file ${path}`);
}
