import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '@keelson/core/runtime';
import test, { type ExecutionContext } from 'ava';
import { convertLines } from '../src/logs/convert-lines.ts';
import { LogFollower } from '../src/logs/log-follower.ts';
import type { LogPosition } from '../src/state/state-records.ts';

const entry = (text: string, time = 1) =>
  `2026-01-02T03:04:05.${String(time).padStart(9, '0')}+00:00 stdout F ${text}\n`;

interface Copying {
  readonly source: string;
  readonly target: string;
  /** Every position that was saved, the oldest first. */
  readonly saved: LogPosition[];
  follow(from?: LogPosition): LogFollower;
}

function copying(t: ExecutionContext): Copying {
  const folder = mkdtempSync('/tmp/keelson-logs-');
  t.teardown(() => rmSync(folder, { recursive: true }));
  const [source, target] = [join(folder, 'engine.log'), join(folder, 'pod', 'app', '0.log')];
  const saved: LogPosition[] = [];
  const follow = (from?: LogPosition) =>
    new LogFollower({
      ...{ source, target, from, clock: systemClock },
      save: (position) => saved.push(position),
      onError: (error) => t.fail(String(error)),
    });
  return { source, target, saved, follow };
}

test("Docker's log entries are converted to CRI log lines, complete and partial ones", (t) => {
  const line = (log: string, stream = 'stdout') =>
    `${JSON.stringify({ log, stream, time: '2026-01-02T03:04:05.1Z' })}\n`;
  const input = Buffer.from(`${line('one\n')}${line('pärt')}not json\n${line('two\n', 'stderr')}{"log":"cut`);
  const { consumed, output } = convertLines(input);
  const time = '2026-01-02T03:04:05.1Z';
  t.is(output.toString(), `${time} stdout F one\n${time} stdout P pärt\n${time} stderr F two\n`);
  t.is(input.subarray(consumed).toString(), '{"log":"cut');
});

test("Podman's log entries are copied unchanged, and invalid ones are omitted", (t) => {
  const input = Buffer.concat([Buffer.from(`${entry('a')}garbage\n${entry('b')}`), Buffer.from([0xff, 0x0a])]);
  t.is(convertLines(input).output.toString(), entry('a') + entry('b'));
});

test('after a crash at any moment no line is missing or repeated', (t) => {
  const { source, target, saved, follow } = copying(t);
  const lines = Array.from({ length: 50 }, (_, index) => entry(`line ${index}`, index));
  let written = '';
  writeFileSync(source, '');
  for (const [index, line] of lines.entries()) {
    appendFileSync(source, line);
    written += line;
    // Dropping a follower after any save has the effect of a crash: the target is longer than the saved
    // position.
    const follower = follow(saved[Math.floor(saved.length * ((index * 7) % 10) * 0.1)]);
    follower.reopen();
    t.is(readFileSync(target, 'utf8'), written);
    follower.close();
  }
});

test('a target that was renamed before a crash is truncated as well', (t) => {
  const { source, target, saved, follow } = copying(t);
  writeFileSync(source, entry('one') + entry('two'));
  const first = follow();
  first.reopen();
  const early = saved[0];
  t.deepEqual([early?.offset, early?.size], [0, 0]);
  renameSync(target, `${target}.1`);
  first.close();
  appendFileSync(source, entry('three'));
  const next = follow(early);
  next.finish();
  t.is(readFileSync(`${target}.1`, 'utf8'), '');
  t.is(readFileSync(target, 'utf8'), entry('one') + entry('two') + entry('three'));
  t.true(saved.at(-1)?.complete);
});

test('existing content of the target remains', (t) => {
  const { source, target, follow } = copying(t);
  mkdirSync(join(target, '..'), { recursive: true });
  writeFileSync(target, entry('earlier'));
  writeFileSync(source, entry('now'));
  follow().finish();
  t.is(readFileSync(target, 'utf8'), entry('earlier') + entry('now'));
});

test('a source that is created later is followed as it grows', async (t) => {
  const { source, target, follow } = copying(t);
  const follower = follow();
  const hold = setInterval(() => {}, 1000);
  t.teardown(() => clearInterval(hold));
  writeFileSync(source, entry('first'));
  follower.reopen();
  for (let count = 2; count < 20; count += 1) {
    appendFileSync(source, entry(`number ${count}`));
    while (!readFileSync(target, 'utf8').includes(`number ${count}\n`))
      await new Promise((resolve) => setTimeout(resolve, 5));
  }
  follower.close();
  t.is(readFileSync(target, 'utf8'), readFileSync(source, 'utf8'));
});

test('a log rotation of the engine loses no line of a follower', (t) => {
  const { source, target, saved, follow } = copying(t);
  writeFileSync(source, entry('one'));
  const follower = follow();
  follower.reopen();
  appendFileSync(source, entry('two'));
  renameSync(source, `${source}.1`);
  writeFileSync(source, entry('three'));
  follower.reopen();
  follower.close();
  const next = follow(saved.at(-1));
  appendFileSync(source, entry('four'));
  next.finish();
  t.is(readFileSync(target, 'utf8'), ['one', 'two', 'three', 'four'].map((text) => entry(text)).join(''));
});

test('a file that Docker rotated while there was no follower is read to its end first', (t) => {
  const { source, target, saved, follow } = copying(t);
  writeFileSync(source, entry('one'));
  follow().close();
  appendFileSync(source, entry('two'));
  renameSync(source, `${source}.1`);
  writeFileSync(source, entry('three'));
  const next = follow(saved.at(-1));
  appendFileSync(source, entry('four'));
  next.finish();
  t.is(readFileSync(target, 'utf8'), ['one', 'two', 'three', 'four'].map((text) => entry(text)).join(''));
});
