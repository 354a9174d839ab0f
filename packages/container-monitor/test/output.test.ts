import { spawn } from 'node:child_process';
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { collectOutput, endOf, exitCodeOf, keptOutput } from '../src/index.ts';
import { LineWriter } from '../src/logs/line-writer.ts';
import { LogStream } from '../src/logs/log-stream.ts';
import { id, onLinux, opened, until } from './support/keeper.ts';

function folderOf(t: ExecutionContext): string {
  const folder = mkdtempSync('/tmp/keelson-output-');
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Number of descriptors of this process for a file. */
function descriptorsOf(path: string): number {
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith(path);
    } catch {
      return false; // Closed since.
    }
  }).length;
}

function child() {
  return { stdout: new PassThrough(), stderr: new PassThrough() };
}

test('output is collected from all its chunks, up to the limit', async (t) => {
  const { stdout, stderr } = child();
  const ended = new Promise<number>((resolve) => stdout.once('end', () => resolve(0)));
  const result = collectOutput(
    { stdout, stderr, ended },
    { command: [], maxOutputBytes: 5 },
    { signal: undefined, kill: () => {} },
  );
  for (const chunk of ['ab', 'cd', 'ef', 'gh']) {
    stdout.write(chunk);
    await until(() => stdout.readableLength === 0);
  }
  stdout.end();
  stderr.end('no');
  t.deepEqual([String((await result).stdout), String((await result).stderr)], ['abcde', 'no']);
});

test('output that arrives after the end of the process is waited for, on both streams', async (t) => {
  for (const late of ['stdout', 'stderr'] as const) {
    const streams = child();
    const result = collectOutput(
      { ...streams, ended: Promise.resolve(0) },
      { command: [] },
      { signal: undefined, kill: () => {} },
    );
    streams[late === 'stdout' ? 'stderr' : 'stdout'].end();
    await delay(20);
    streams[late].end('late');
    t.is(String((await result)[late]), 'late');
  }
  const none = { stdout: null, stderr: null, ended: Promise.resolve(4) };
  t.is((await collectOutput(none, { command: [] }, { signal: undefined, kill: () => {} })).exitCode, 4);
});

test('a pipe that fails ends the output, which is returned with what remains of the other one', async (t) => {
  const { stdout, stderr } = child();
  const result = collectOutput(
    { stdout, stderr, ended: Promise.resolve(0) },
    { command: [] },
    { signal: undefined, kill: () => {} },
  );
  stdout.write('read');
  await until(() => stdout.readableLength === 0);
  stdout.on('error', () => {}).destroy(new Error('EIO'));
  stderr.end('rest');
  t.deepEqual([String((await result).stdout), String((await result).stderr)], ['read', 'rest']);
});

test('a canceled command is killed once, its pipes are closed, and its deadline does not count any more', async (t) => {
  const caller = new AbortController();
  const { stdout, stderr } = child();
  let kills = 0;
  const result = collectOutput(
    { stdout, stderr, ended: new Promise(() => {}) },
    { command: [], execTimeoutMs: 1 },
    { signal: caller.signal, kill: () => void kills++ },
  );
  caller.abort(new Error('why'));
  const error = await t.throwsAsync(result, { code: 'Aborted' });
  t.like(error?.cause, { message: 'why' });
  t.deepEqual([kills, stdout.destroyed, stderr.destroyed], [1, true, true]);
  // A timer that is started later and lasts longer fires after that of the deadline.
  await delay(5);
  t.is(kills, 1);
});

test('neither a signal nor a deadline kills a command whose start has failed, or that is past its deadline', async (t) => {
  const caller = new AbortController();
  let kills = 0;
  const options = { signal: caller.signal, kill: () => void kills++ };
  const failed = { ...child(), ended: Promise.reject(new Error('no such program')) };
  await t.throwsAsync(collectOutput(failed, { command: [], execTimeoutMs: 1 }, options), {
    message: 'no such program',
  });
  await delay(5);
  t.is(kills, 0);
  const late = { ...child(), ended: new Promise<number>(() => {}) };
  await t.throwsAsync(collectOutput(late, { command: [], execTimeoutMs: 1 }, options), { code: 'DeadlineExceeded' });
  caller.abort();
  t.is(kills, 1);
  t.is(exitCodeOf(null, null), 128);
});

test('kept output can be read after the end of the child; a reader that leaves closes the pipe', async (t) => {
  t.is(keptOutput(null), null);
  const echo = spawn('/bin/echo', ['kept'], { stdio: ['ignore', 'pipe', 'ignore'] });
  const copy = keptOutput(echo.stdout);
  await endOf(echo);
  await until(() => echo.stdout.readableEnded);
  t.is(String(copy?.read()), 'kept\n');
  const source = new PassThrough();
  keptOutput(source)?.destroy();
  await until(() => source.destroyed);
  t.true(source.destroyed);
});

function collect(words: readonly [string, ...string[]], request: object, signal?: AbortSignal) {
  const child = spawn(words[0], words.slice(1), { stdio: ['ignore', 'pipe', 'pipe'] });
  const process = { stdout: child.stdout, stderr: child.stderr, ended: endOf(child) };
  return collectOutput(process, { command: [], ...request }, { signal, kill: () => void child.kill('SIGKILL') });
}

/** A process without a child: its output is complete before it ends, however slow the machine is. */
function written(stdout: string, stderr: string, ended: Promise<number>, open = false) {
  const streams = { stdout: new PassThrough(), stderr: new PassThrough(), ended };
  streams.stdout.write(stdout);
  streams.stderr.write(stderr);
  if (!open) for (const stream of [streams.stdout, streams.stderr]) stream.end();
  return streams;
}

const noSignal = { signal: undefined, kill: () => {} };

test('the output of a process is collected up to a limit, with its exit code', async (t) => {
  const whole = await collectOutput(written('out', 'err', Promise.resolve(3)), { command: [] }, noSignal);
  t.deepEqual([String(whole.stdout), String(whole.stderr), whole.exitCode], ['out', 'err', 3]);
  const request = { command: [], maxOutputBytes: 3 };
  const limited = await collectOutput(written('123456', '', Promise.resolve(0)), request, noSignal);
  t.is(String(limited.stdout), '123');
  t.is((await collect(['/bin/sh', '-c', 'kill -TERM $$'], {})).exitCode, 143);
  await t.throwsAsync(collect(['/nonexistent'], {}), { code: 'StartFailed' });
});

test('a process is killed at its deadline and when the caller cancels', async (t) => {
  const late = await t.throwsAsync(collect(['/bin/sleep', '100'], { execTimeoutMs: 10 }), { code: 'DeadlineExceeded' });
  t.regex(late?.message ?? '', /10 ms/);
  await t.throwsAsync(collect(['/bin/sleep', '100'], {}, AbortSignal.abort()), { code: 'Aborted' });
});

test('a signal that fires after the end of a process does not kill', async (t) => {
  const caller = new AbortController();
  const child = spawn('/bin/true', [], { stdio: ['ignore', 'pipe', 'pipe'] });
  let kills = 0;
  const collected = { stdout: child.stdout, stderr: child.stderr, ended: endOf(child) };
  const options = { signal: caller.signal, kill: () => void kills++ };
  t.is((await collectOutput(collected, { command: [] }, options)).exitCode, 0);
  caller.abort();
  t.is(kills, 0);
});

test('the output of a process whose children keep the pipes open is returned', async (t) => {
  const process = written('out', '', Promise.resolve(0), true);
  const { stdout, exitCode } = await collectOutput(process, { command: [] }, noSignal);
  t.deepEqual([String(stdout), exitCode], ['out', 0]);
  t.true(process.stdout.destroyed);
});

const tags = (path: string) => [...readFileSync(path, 'utf8').matchAll(/^\S+ (\S+) ([FP]) (.*)$/gm)];

test('a line of the maximum length is whole, and longer ones are divided at it', (t) => {
  const path = join(folderOf(t), 'c.log');
  const writer = new LineWriter(path);
  writer.write('stdout', Buffer.from(`${'x'.repeat(16_384)}\n`));
  writer.write('stdout', Buffer.from('y'.repeat(16_383)));
  t.is(tags(path).length, 1);
  t.true(writer.hasRest);
  writer.write('stdout', Buffer.from('y'));
  t.false(writer.hasRest, 'as long as an entry can be');
  writer.write('stderr', Buffer.from('z'));
  t.true(writer.hasRest);
  writer.close();
  t.deepEqual(
    tags(path).map(([, stream, tag, text = '']) => [stream, tag, text.length]),
    [
      ['stdout', 'F', 16_384],
      ['stdout', 'P', 16_384],
      ['stderr', 'P', 1],
    ],
  );
});

test('an empty line is an entry', (t) => {
  const path = join(folderOf(t), 'c.log');
  const writer = new LineWriter(path);
  writer.write('stdout', Buffer.from('\nx\n\n'));
  t.deepEqual(
    tags(path).map(([, , tag, text]) => [tag, text]),
    [
      ['F', ''],
      ['F', 'x'],
      ['F', ''],
    ],
  );
  writer.close();
});

test('times of log entries have nine digits and never decrease', (t) => {
  const path = join(folderOf(t), 'c.log');
  const times = [1_700_000_000_000_042, 1_700_000_000_000_041, 1_700_000_001_500_000];
  const writer = new LineWriter(path, () => times.shift() ?? 0);
  for (const text of ['a\n', 'b\n', 'c']) writer.write('stdout', Buffer.from(text));
  writer.close();
  const found = readFileSync(path, 'utf8').trimEnd().split('\n');
  t.deepEqual(found, [
    '2023-11-14T22:13:20.000042000Z stdout F a',
    '2023-11-14T22:13:20.000042000Z stdout F b',
    '2023-11-14T22:13:21.500000000Z stdout P c',
  ]);
});

onLinux('a log has one open file: a rotation closes the old one, a failed rotation keeps it', (t) => {
  const folder = folderOf(t);
  const path = join(folder, 'logs', 'c.log');
  const writer = new LineWriter(path);
  writer.write('stdout', Buffer.from('one\n'));
  renameSync(path, `${path}.1`);
  writer.reopen();
  t.is(descriptorsOf(folder), 1);
  writer.write('stdout', Buffer.from('two\n'));
  renameSync(join(folder, 'logs'), join(folder, 'old'));
  writeFileSync(join(folder, 'logs'), '');
  t.throws(() => writer.reopen());
  writer.write('stdout', Buffer.from('three\n'));
  t.deepEqual(
    tags(join(folder, 'old', 'c.log')).map(([, , , text]) => text),
    ['two', 'three'],
  );
  writer.close();
  writer.close();
  t.is(descriptorsOf(folder), 0);
  writer.write('stdout', Buffer.from('discarded\n'));
  t.false(writer.hasRest);
});

onLinux('a full disk loses log lines and is no error', (t) => {
  const writer = new LineWriter('/dev/full');
  t.notThrows(() => writer.write('stdout', Buffer.from('lost\n')));
  writer.close();
});

onLinux('unterminated lines are logged after a short time, each of them', async (t) => {
  const { context, log } = await opened(t);
  const stream = new LogStream(context.state.root, id);
  const pipe = openSync(join(context.state.container(id), 'stdout'), constants.O_WRONLY);
  for (const [index, text] of ['name: ', 'password: '].entries()) {
    writeSync(pipe, text);
    await until(() => tags(log).length > index);
  }
  t.deepEqual(
    tags(log).map(([, stream, tag, text]) => [stream, tag, text]),
    [
      ['stdout', 'P', 'name: '],
      ['stdout', 'P', 'password: '],
    ],
  );
  closeSync(pipe);
  t.false(stream.endIfExited());
  stream.closeStdin();
  stream.closeStdin();
  stream.drop();
  await until(() => descriptorsOf(context.state.container(id)) === 0);
  t.deepEqual([descriptorsOf(context.state.container(id)), descriptorsOf(log)], [0, 0]);
  t.false(existsSync(context.runFiles.path(id, 'logged')));
});

onLinux('the end of a container reads all remaining output of both pipes, then releases the monitor', async (t) => {
  const { context, log } = await opened(t);
  const folder = context.state.container(id);
  const stream = new LogStream(context.state.root, id);
  const ended: string[] = [];
  const chunks: string[] = [];
  for (const name of ['one', 'two'])
    stream.listeners.add({
      take: (from, chunk) => chunks.push(`${name} ${from} ${chunk.length}`),
      end: () => ended.push(name),
    });
  const done = openSync(join(folder, 'done'), constants.O_RDONLY | constants.O_NONBLOCK);
  const line = `${'x'.repeat(99)}\n`;
  for (const name of ['stdout', 'stderr']) {
    const pipe = openSync(join(folder, name), constants.O_WRONLY);
    for (let i = 0; i < 300; i += 1) writeSync(pipe, line);
    closeSync(pipe);
  }
  t.false(stream.endIfExited());
  await context.runFiles.writeExit(id, { exitCode: 0 });
  t.true(stream.endIfExited(), 'without a turn of the event loop, so nothing was read before');
  t.is(tags(log).filter(([, from, tag]) => from === 'stdout' && tag === 'F').length, 300);
  t.is(tags(log).filter(([, from, tag]) => from === 'stderr' && tag === 'F').length, 300);
  t.deepEqual(ended, ['one', 'two']);
  t.true(chunks.includes('two stderr 30000'), chunks.join());
  t.is(readFileSync(done, 'utf8'), '\n');
  closeSync(done);
  t.true(await context.runFiles.isLogged(id));
  await until(() => descriptorsOf(folder) === 0);
  t.is(descriptorsOf(folder), 0);
});

onLinux('the folder of a log is created, and a container without a log path has none', async (t) => {
  const { context, log } = await opened(t);
  const folder = context.state.container(id);
  const { logPath: _, ...record } = JSON.parse(readFileSync(join(folder, 'record.json'), 'utf8'));
  writeFileSync(join(folder, 'record.json'), JSON.stringify(record));
  const stream = new LogStream(context.state.root, id);
  t.false(existsSync(log));
  stream.drop();
  const deep = join(folderOf(t), 'a', 'b', 'c.log');
  mkdirSync(join(deep, '..', '..'));
  new LineWriter(deep).close();
  t.true(existsSync(deep));
});

test('output that arrived while the event loop was blocked is returned', async (t) => {
  const { stdout, stderr } = spawn('/bin/sh', ['-c', 'echo hello'], { stdio: ['ignore', 'pipe', 'pipe'] });
  const options = { signal: undefined, kill: () => {} };
  const collected = collectOutput({ stdout, stderr, ended: Promise.resolve(0) }, { command: [] }, options);
  await new Promise(process.nextTick);
  const until = performance.now() + 600;
  while (performance.now() < until);
  t.is(Buffer.from((await collected).stdout).toString(), 'hello\n');
});
