import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { isStorageError } from '@keelson/core';
import test, { type ExecutionContext } from 'ava';
import { LmdbStore } from '../src/index.ts';
import { RecordingLogger, temporaryDirectory } from './support/lmdb-harness.ts';

function directory(t: ExecutionContext): string {
  const { path, remove } = temporaryDirectory();
  t.teardown(remove);
  return path;
}

async function opened(t: ExecutionContext, path: string): Promise<LmdbStore> {
  const store = new LmdbStore({ path });
  await store.ready();
  t.teardown(() => store.close());
  return store;
}

const locksIn = (path: string) => readdirSync(path).filter((name) => name.includes('keelson.lock'));

/**
 * Starts a process that writes to the store continuously; `through` is a command that runs it. Resolves when it has
 * written.
 */
async function writer(t: ExecutionContext, path: string, through: readonly string[] = []): Promise<ChildProcess> {
  const script = fileURLToPath(new URL('./support/crash-writer.js', import.meta.url));
  const [command = process.execPath, ...args] = [...through, process.execPath, script, path, '0', '1', '1000'];
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  t.teardown(() => child.kill('SIGKILL'));
  let text = '';
  while (text.split('\n').length < 3) text += String((await once(child.stdout, 'data'))[0]);
  child.stdout.resume();
  return child;
}

/** Resolves when the process has reported a write above the revision; earlier reports may still be in the pipe. */
async function written(child: ChildProcess, above: number): Promise<void> {
  let text = '';
  for await (const chunk of child.stdout?.iterator({ destroyOnReturn: false }) ?? []) {
    text += String(chunk);
    if (text.split('\n').some((line) => / (?:create|update|delete) /.test(line) && Number.parseInt(line, 10) > above))
      break;
  }
  child.stdout?.resume();
}

async function killed(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}

test('a directory is opened once in a process, whichever path is used for it', async (t) => {
  const path = directory(t);
  const link = join(directory(t), 'link');
  symlinkSync(path, link);
  const store = await opened(t, path);
  for (const again of [path, `${path}/.`, link]) {
    await t.throwsAsync(new LmdbStore({ path: again }).ready(), {
      code: 'Unavailable',
      message: new RegExp(`in use by process ${process.pid} on `),
    });
  }
  await store.write({ op: 'put', key: '/a', value: Buffer.from('x'), expect: 0 });
  await store.close();
  t.deepEqual(locksIn(path), [], 'the lock is removed with the store');
  const next = await opened(t, link);
  t.is(await next.currentRevision(), 2);
});

test('exactly one of several stores that open a directory concurrently succeeds', async (t) => {
  const path = directory(t);
  for (let round = 0; round < 10; round++) {
    const stores = Array.from({ length: 6 }, () => new LmdbStore({ path }));
    const outcomes = await Promise.allSettled(stores.map((store) => store.ready()));
    const reasons = outcomes.map((outcome) => (outcome.status === 'rejected' ? String(outcome.reason) : 'opened'));
    t.is(reasons.filter((reason) => reason === 'opened').length, 1, reasons.join('\n'));
    await Promise.all(stores.map((store) => store.close()));
    t.deepEqual(locksIn(path), []);
  }
});

test('a path that is longer than a socket address is locked as well', async (t) => {
  const path = join(directory(t), 'd'.repeat(100), 'store');
  await opened(t, path);
  await t.throwsAsync(new LmdbStore({ path }).ready(), { code: 'Unavailable', message: /in use by process/ });
});

test('a directory in use is rejected with the id of its process, and can be opened after that process has died', async (t) => {
  const path = directory(t);
  const child = await writer(t, path);
  await t.throwsAsync(new LmdbStore({ path }).ready(), {
    code: 'Unavailable',
    message: new RegExp(`in use by process ${child.pid} on `),
  });
  await killed(child);
  t.is(locksIn(path).length, 1, 'a killed process leaves its socket behind');
  await opened(t, path);
  t.is(locksIn(path).length, 1, 'the next process replaces it');
});

test('a process that is stopped by SIGSTOP keeps its directory', async (t) => {
  const path = directory(t);
  const child = await writer(t, path);
  child.kill('SIGSTOP');
  await t.throwsAsync(new LmdbStore({ path }).ready(), {
    code: 'Unavailable',
    message: /a process that does not answer/,
  });
});

const namespaces = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc', '--net'];
const canUnshare = spawnSync(namespaces[0] ?? '', [...namespaces.slice(1), 'true']).status === 0;
// In continuous integration the absence is a failure.
const withNamespaces = canUnshare || process.env['CI'] ? test : test.skip;

withNamespaces(
  `a lock of a process in other PID and network namespaces is detected${canUnshare ? '' : ' [unshare is not possible here]'}`,
  async (t) => {
    const path = directory(t);
    const child = await writer(t, path, namespaces);
    await t.throwsAsync(new LmdbStore({ path }).ready(), { code: 'Unavailable', message: /in use by process \d+ on / });
    await killed(child);
    await opened(t, path);
  },
);

withNamespaces(
  `a process in other namespaces cannot open a directory in use${canUnshare ? '' : ' [unshare is not possible here]'}`,
  async (t) => {
    const path = directory(t);
    await opened(t, path);
    const script = fileURLToPath(new URL('./support/crash-writer.js', import.meta.url));
    const [command = '', ...args] = namespaces;
    const failing = promisify(execFile)(command, [...args, process.execPath, script, path, '0', '1', '1000']);
    await t.throwsAsync(failing, { message: /in use by process \d+ on / });
  },
);

const fenced = {
  code: 'Unavailable',
  message: /another process has written to the store in .*; run one server per directory/,
} as const;

/** A store on a directory in which another process writes: its commits can meet the check of the pages. */
async function openedBeside(path: string, logger: RecordingLogger): Promise<LmdbStore> {
  const deadline = Date.now() + 30_000;
  for (;;) {
    const store = new LmdbStore({ path, logger });
    try {
      await store.ready();
      return store;
    } catch (error) {
      await store.close();
      if (!isStorageError(error) || error.code !== 'Corrupt' || Date.now() > deadline) throw error;
    }
  }
}

test('without the lock, a process that detects writes of another process fails and overwrites nothing', async (t) => {
  const path = directory(t);
  const child = await writer(t, path);
  for (const name of locksIn(path)) rmSync(join(path, name));
  const logger = new RecordingLogger();
  const store = await openedBeside(path, logger);
  t.teardown(() => store.close());
  const head = await store.currentRevision();
  const watch = await store.watch({ start: '/', end: '0' }, { after: head });
  await written(child, head);
  const writes = Array.from({ length: 5 }, (_, i) =>
    store.write({ op: 'put', key: `/intruder${i}`, value: Buffer.from('x'), expect: 0 }),
  );
  for (const write of writes) await t.throwsAsync(write, fenced);
  t.regex((await store.failed).message, fenced.message);
  await t.throwsAsync(store.get('/a'), fenced);
  await t.throwsAsync(watch[Symbol.asyncIterator]().next(), { code: 'Closed' });
  t.true(
    logger.lines.some(
      ({ level, message }) => level === 'error' && message === 'another process has written to the store',
    ),
  );
  await store.close();
  await once(child.stdout ?? process.stdin, 'data');
  t.is(child.exitCode, null, 'the first process continues');
  await killed(child);
  const left = await opened(t, path);
  const revisions = new Set<number>();
  for await (const { entries } of left.list({ start: '/', end: '0' })) {
    for (const { key, modRevision } of entries) {
      t.false(key.startsWith('/intruder'));
      t.false(revisions.has(modRevision), `revision ${modRevision} was assigned twice`);
      revisions.add(modRevision);
    }
  }
});

test('the owner of a directory fails when another process has written despite the lock', async (t) => {
  const path = directory(t);
  const store = await opened(t, path);
  for (const name of locksIn(path)) rmSync(join(path, name));
  await writer(t, path);
  await t.throwsAsync(store.write({ op: 'put', key: '/a', value: Buffer.from('x'), expect: 0 }), fenced);
  await t.throwsAsync(store.compact(1), fenced);
});

test('the directory and its files are accessible to their owner only; wider modes are restricted and logged', async (t) => {
  const path = join(directory(t), 'parent', 'store');
  const umask = process.umask(0);
  t.teardown(() => process.umask(umask));
  const mode = (name: string) => (statSync(join(path, name)).mode & 0o777).toString(8);
  const store = new LmdbStore({ path });
  await store.ready();
  t.is(mode('..'), '700');
  t.is(mode('.'), '700');
  for (const name of readdirSync(path)) t.is(mode(name), '600', name);
  await store.close();
  chmodSync(path, 0o755);
  for (const name of readdirSync(path)) chmodSync(join(path, name), 0o644);
  const logger = new RecordingLogger();
  const again = new LmdbStore({ path, logger });
  await again.ready();
  t.is(mode('.'), '700');
  for (const name of readdirSync(path)) t.is(mode(name), '600', name);
  t.deepEqual(
    logger.lines.map(({ message, fields }) => [message, fields?.['before']]),
    [
      ['a file mode was tightened', '0755'],
      ['a file mode was tightened', '0644'],
      ['a file mode was tightened', '0644'],
      ['a file mode was tightened', '0644'],
    ],
  );
  await again.close();
});

test('a path that cannot be a directory is Unavailable', async (t) => {
  const path = join(directory(t), 'file');
  writeFileSync(path, 'not a directory');
  await t.throwsAsync(new LmdbStore({ path }).ready(), { code: 'Unavailable' });
  await t.throwsAsync(new LmdbStore({ path: join(path, 'below') }).ready(), { code: 'Unavailable' });
});

for (const [what, content] of [
  ['garbage', Buffer.alloc(64 * 1024, 'garbage')],
  ['a few bytes', Buffer.from('x')],
  ['of another format', Buffer.concat([Buffer.alloc(24), Buffer.from('dec0efbe07000000', 'hex'), Buffer.alloc(8160)])],
] as const) {
  test(`a data file that is ${what} is Corrupt, and the directory is released`, async (t) => {
    const path = directory(t);
    writeFileSync(join(path, 'data.mdb'), content);
    await t.throwsAsync(new LmdbStore({ path }).ready(), { code: 'Corrupt', message: /data\.mdb/ });
    t.deepEqual(locksIn(path), []);
    t.true(readFileSync(join(path, 'data.mdb')).equals(content), 'the file was changed');
  });
}

test('an empty data file, as left by a crash at the first start, is a new store', async (t) => {
  const path = directory(t);
  writeFileSync(join(path, 'data.mdb'), '');
  const store = await opened(t, path);
  t.is(await store.currentRevision(), 1);
});
