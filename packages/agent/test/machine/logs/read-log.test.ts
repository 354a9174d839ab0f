import { appendFile, mkdtemp, open, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { formatLogLine } from '@keelson/container-runtime';
import { systemClock } from '@keelson/core/runtime';
import test, { type ExecutionContext } from 'ava';
import { type LogSelection, readLog } from '../../../src/machine/logs/read-log.ts';

const startMs = Date.UTC(2026, 0, 1);
const timeOf = (second: number) => new Date(startMs + second * 1000).toISOString().replace('Z', '000000Z');
const entry = (second: number, text: string, partial = false, stream: 'stdout' | 'stderr' = 'stdout') =>
  formatLogLine(timeOf(second), stream, partial, Buffer.from(text)).toString('latin1');
const lines = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => entry(from + index, `line ${from + index}`)).join('');
const texts = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => `line ${from + index}\n`).join('');

async function logPath(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-logs-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  return join(folder, 'main_0.log');
}

async function read(path: string, selection: LogSelection = {}): Promise<string> {
  let text = '';
  for await (const part of readLog(path, selection)) text += part.toString('latin1');
  return text;
}

test('the last lines of a log of 100 GiB are read from its end', async (t) => {
  const path = await logPath(t);
  const file = await open(path, 'w');
  const hole = 100 * 2 ** 30;
  await file.truncate(hole);
  await file.write(`\n${lines(0, 5)}`, hole);
  await file.close();
  t.is(await read(path, { tailLines: 2 }), texts(3, 5));
});

test('tail counts from the end across blocks and rotated files, for every number of lines', async (t) => {
  const path = await logPath(t);
  await writeFile(`${path}.20260101-000000`, lines(0, 40));
  await writeFile(`${path}.20260101-000100`, lines(40, 45));
  await writeFile(path, lines(45, 5000));
  for (const wanted of [0, 1, 2, 999, 2000, 4954, 4955, 4956, 4960, 4999, 5000, 6000]) {
    t.is(await read(path, { tailLines: wanted }), texts(Math.max(0, 5000 - wanted), 5000), String(wanted));
  }
  t.is(await read(path), texts(0, 5000));
});

test('blocks that end at any byte of an entry result in the same lines', async (t) => {
  const path = await logPath(t);
  // 64 KiB blocks are counted from the end of the file and from its start: the length of the last line moves both
  // through the entries.
  const body = lines(0, 2500);
  for (let length = 0; length < 50; length += 1) {
    const last = 'x'.repeat(length);
    await writeFile(path, body + entry(2500, last));
    t.is(await read(path, { tailLines: 2400 }), `${texts(101, 2500)}${last}\n`, String(length));
  }
});

test('a line of several entries is one line: tail counts it once, and it has one timestamp', async (t) => {
  const path = await logPath(t);
  const part = 'y'.repeat(16 * 1024);
  const long = Array.from({ length: 20 }, (_, index) => entry(2, part, index < 19)).join('');
  await writeFile(path, entry(1, 'before') + long + entry(3, 'after'));
  t.is(await read(path, { tailLines: 2 }), `${part.repeat(20)}\nafter\n`);
  t.is(await read(path, { tailLines: 2, timestamps: true }), `${timeOf(2)} ${part.repeat(20)}\n${timeOf(3)} after\n`);
  await appendFile(path, entry(4, 'prompt> ', true));
  t.is(await read(path, { tailLines: 2 }), 'after\nprompt> ');
  t.is(await read(path, { tailLines: 1 }), 'prompt> ');
});

test('sinceMs and limitBytes apply with and without tail; invalid lines are omitted', async (t) => {
  const path = await logPath(t);
  await writeFile(
    path,
    `garbage\n${lines(0, 10)}\n${'z'.repeat(200_000)}\n${lines(10, 20)}2026-01-01T00:01:00Z stdout F cut`,
  );
  const sinceMs = startMs + 8000;
  t.is(await read(path, { sinceMs }), `${texts(8, 20)}cut\n`);
  t.is(await read(path, { sinceMs, tailLines: 3 }), `${texts(18, 20)}cut\n`);
  t.is(await read(path, { sinceMs, tailLines: 100 }), `${texts(8, 20)}cut\n`);
  t.is(await read(path, { limitBytes: 10 }), texts(0, 2).slice(0, 10));
  t.is(await read(path, { tailLines: 3, limitBytes: 9 }), `${texts(18, 20)}`.slice(0, 9));
});

test('rotated files whose last entry is too old are not opened', async (t) => {
  const path = await logPath(t);
  await writeFile(path, lines(0, 3));
  const old = await open(`${path}.20260101-000000`, 'w');
  await old.write(lines(0, 3));
  await old.utimes(1, 1);
  await old.close();
  t.is(await read(path, { sinceMs: startMs + 1000 }), texts(1, 3));
});

test('following continues across rotations without loss or repetition, even several files behind', async (t) => {
  const path = await logPath(t);
  await writeFile(path, lines(0, 100));
  let ended = false;
  const log = readLog(path, {}, { clock: systemClock, signal: new AbortController().signal, ended: () => ended });
  let text = '';
  const readUntil = async (to: number) => {
    while (!text.endsWith(texts(to - 1, to))) {
      const { value, done } = await log.next();
      if (done === true) return;
      text += value.toString('latin1');
    }
  };
  await readUntil(100);
  // The runtime appends to the renamed file until it has opened the new one.
  await rename(path, `${path}.20260101-000001`);
  await appendFile(`${path}.20260101-000001`, lines(100, 110));
  await writeFile(path, lines(110, 120));
  await readUntil(120);
  for (const [index, from] of [120, 130, 140].entries()) {
    await appendFile(path, lines(from, from + 10));
    await rename(path, `${path}.20260101-00010${index}`);
  }
  await rm(`${path}.20260101-000001`);
  // Between the steps of a rotation there is no file at the path.
  await readUntil(150);
  await writeFile(path, lines(150, 160));
  ended = true;
  await readUntil(160);
  t.true((await log.next()).done);
  t.is(text, texts(0, 160));
});
