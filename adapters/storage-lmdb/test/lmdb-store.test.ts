import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { FakeClock } from '@keelson/core/runtime';
import type { Change, Store } from '@keelson/core/storage-adapter';
import test, { type ExecutionContext } from 'ava';
import lmdb, { LmdbStore, type LmdbStoreOptions } from '../src/index.ts';
import { temporaryDirectory } from './support/lmdb-harness.ts';

const everything = { start: '/', end: '0' };

async function opened(t: ExecutionContext, options: Partial<LmdbStoreOptions> = {}): Promise<LmdbStore> {
  const { path, remove } = temporaryDirectory();
  const store = new LmdbStore({ path, ...options });
  await store.ready();
  t.teardown(async () => {
    await store.close();
    remove();
  });
  return store;
}

async function put(store: Store, key: string, value: string | Buffer, expect = 0): Promise<number> {
  const result = await store.write({ op: 'put', key, value: Buffer.from(value), expect });
  if (!result.ok) throw new Error(`refused: ${key}`);
  return result.revision;
}

async function changesAfter(store: Store, after: number): Promise<Change[]> {
  const head = await store.currentRevision();
  const changes: Change[] = [];
  for await (const batch of await store.watch(everything, { after, prevValue: true })) {
    changes.push(...batch.changes);
    if (batch.frontier >= head) break;
  }
  return changes;
}

test('the adapter takes a path and binds a store that is not yet open', async (t) => {
  t.is(lmdb.name, 'lmdb');
  t.deepEqual(lmdb.parseUrl('./some dir/data'), { path: './some dir/data' });
  t.throws(() => lmdb.parseUrl(''), { message: /needs the path/ });
  t.throws(() => lmdb.parseUrl('a\0b'), { message: /zero byte/ });
  const store = new LmdbStore({ path: '/nowhere/at/all' });
  await t.throwsAsync(store.get('/a'), { code: 'Unavailable', message: /not open yet/ });
  await store.close();
  await t.throwsAsync(store.ready(), { code: 'Closed' });
});

test('a watch that begins on disk continues in memory without gap or repetition', async (t) => {
  const store = await opened(t);
  const writers = Array.from({ length: 10 }, async (_, worker) => {
    let expect = 0;
    for (let i = 0; i < 900; i++) expect = await put(store, `/w${worker}`, `${worker}:${i}`, expect);
  });
  await Promise.all(writers);
  for (const after of [1, 2, 1000, 4900, 4906, 8999]) {
    const changes = await changesAfter(store, after);
    t.deepEqual(
      changes.map((change) => change.revision),
      Array.from({ length: 9001 - after }, (_, i) => after + 1 + i),
    );
    const last = new Map<string, string>();
    for (const { key, entry, prev, type } of changes) {
      const [before, now] = [prev?.value, entry?.value].map((bytes) => bytes && Buffer.from(bytes).toString());
      const serial = Number(now?.split(':')[1]);
      if (type === 'update' ? before !== now?.replace(/\d+$/, String(serial - 1)) : before !== undefined)
        t.fail(`${key} ${before} ${now}`);
      if (last.has(key) && last.get(key) !== before) t.fail(`${key}: ${last.get(key)} then ${before}`);
      last.set(key, now ?? '');
    }
  }
});

test('the file grows with the data, and large lists are read in chunks', async (t) => {
  const store = await opened(t);
  const value = Buffer.alloc(1 << 20, 'g');
  for (let i = 0; i < 96; i += 8) {
    await Promise.all(Array.from({ length: 8 }, (_, j) => put(store, `/big/${String(i + j).padStart(3, '0')}`, value)));
  }
  let chunks = 0;
  let count = 0;
  for await (const { entries } of store.list(everything)) {
    chunks++;
    count += entries.length;
    t.true(entries.length <= 8, `${entries.length} MiB in one piece`);
    for (const entry of entries) if (!value.equals(entry.value)) t.fail(entry.key);
  }
  t.is(count, 96);
  t.true(chunks >= 12);
});

test('a write that exceeds its deadline or is aborted is OutcomeUnknown, and is executed', async (t) => {
  const clock = new FakeClock();
  const store = await opened(t, { clock });
  const writing = store.write({ op: 'put', key: '/a', value: Buffer.from('x'), expect: 0 }, { timeoutMs: 50 });
  clock.advance(51);
  await t.throwsAsync(writing, { code: 'OutcomeUnknown' });
  const controller = new AbortController();
  const other = store.write(
    { op: 'put', key: '/b', value: Buffer.from('x'), expect: 0 },
    { signal: controller.signal },
  );
  controller.abort();
  await t.throwsAsync(other, { code: 'OutcomeUnknown' });
  await store.settled();
  t.is((await store.get('/a')).entry?.modRevision, 2);
  t.is((await store.get('/b')).entry?.modRevision, 3);
});

test('no write is visible before it is on disk', async (t) => {
  const store = await opened(t);
  const created = await put(store, '/a', 'old');
  const watch = await store.watch(everything, { after: created });
  const next = watch[Symbol.asyncIterator]().next();
  let acknowledged = false;
  const writing = store.write({ op: 'put', key: '/a', value: Buffer.from('new'), expect: created }).then(() => {
    acknowledged = true;
  });
  const creating = put(store, '/b', 'new');
  for (let i = 0; !acknowledged; i++) {
    t.is(await store.currentRevision(), created);
    t.is(Buffer.from((await store.get('/a')).entry?.value ?? []).toString(), 'old');
    t.is((await store.get('/b')).entry, undefined);
    for await (const chunk of store.list(everything)) {
      if (acknowledged || chunk.revision > created) break;
      t.deepEqual(
        chunk.entries.map(({ key, modRevision }) => [key, modRevision]),
        [['/a', created]],
      );
    }
    t.is((await store.count(everything, { revision: created })).count, 1);
    await new Promise((resolve) => setImmediate(resolve));
    if (i > 100_000) t.fail('never acknowledged');
  }
  await Promise.all([writing, creating]);
  t.is((await next).value?.changes.length, 2);
  await watch.close();
});

test('compaction removes history up to its revision, also that of an earlier process', async (t) => {
  const { path, remove } = temporaryDirectory();
  t.teardown(remove);
  const first = new LmdbStore({ path });
  await first.ready();
  let expect = 0;
  for (let i = 0; i < 500; i++) expect = await put(first, '/a', `${i}`, expect);
  await first.compact(400);
  await first.close();
  const store = new LmdbStore({ path });
  await store.ready();
  t.teardown(() => store.close());
  await store.settled();
  t.is(await store.compactedRevision(), 400);
  t.is((await changesAfter(store, 400)).length, 101);
  await store.compact(501);
  await store.settled();
  t.is(await store.currentRevision(), 501, 'the current revision is kept');
  t.is(await put(store, '/a', 'next', 501), 502);
});

test('a list of a past revision contains thousands of keys that were deleted later', async (t) => {
  const store = await opened(t);
  const keys = Array.from({ length: 3000 }, (_, i) => `/k/${String(i).padStart(5, '0')}`);
  const created = await Promise.all(keys.map((key) => put(store, key, key)));
  const before = await store.currentRevision();
  await Promise.all(keys.map((key, i) => store.write({ op: 'delete', key, expect: created[i] ?? 0 })));
  await put(store, '/k/01500a', 'later');
  const listed: string[] = [];
  for await (const chunk of store.list(everything, { revision: before }))
    listed.push(...chunk.entries.map(({ key }) => key));
  t.deepEqual(listed, keys);
  const page: string[] = [];
  for await (const { entries, more } of store.list(
    { start: '/k/01400', startExclusive: true, end: '/l' },
    { revision: before, limit: 700 },
  )) {
    page.push(...entries.map(({ key }) => key));
    t.true(more);
  }
  t.deepEqual(page, keys.slice(1401, 2101));
});

const onSmallDisk = 'd=$(mktemp -d) && mount -t tmpfs -o size=12m tmpfs "$d" && exec "$@" "$d"';
const mounted = (command: readonly string[]) => ['--mount', 'sh', '-c', onSmallDisk, 'sh', ...command];
const canMount = spawnSync('unshare', mounted(['true'])).status === 0;
// In continuous integration the absence is a failure.
const withMounts = canMount || process.env['CI'] ? test : test.skip;

withMounts(
  `on a full disk reads and deletes continue, also after a restart; creates succeed once space is free${canMount ? '' : ' [unshare cannot mount here]'}`,
  async (t) => {
    const script = fileURLToPath(new URL('./support/small-disk.js', import.meta.url));
    const { stdout } = await promisify(execFile)('unshare', mounted([process.execPath, script]), { timeout: 60_000 });
    const result = JSON.parse(stdout) as Readonly<Record<string, unknown>>;
    t.log(stdout.trim());
    const created = Number(result['created']);
    t.true(created > 500);
    t.is(result['readable'], created, 'the store is opened and read');
    t.regex(
      String(result['createdWhileFull']),
      /^Unavailable: the disk is full: only deletes and small updates are accepted$/,
    );
    t.deepEqual(result['marked'], ['true', 'true', 'true'], 'small updates, such as marks of deletion, are accepted');
    t.deepEqual(result['deleted'], { true: Math.floor(created / 2) });
    t.is(result['resumed'], 'ok');
    t.is(result['left'], created - Math.floor(created / 2) + 1);
  },
);

function canLimitFiles(): boolean {
  const limiter = 'prlimit';
  try {
    execFileSync(limiter, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

const onLimitedDisk = canLimitFiles() ? test : test.skip;
onLimitedDisk(
  `on a full disk only writes are rejected, and they continue once space is free${canLimitFiles() ? '' : ' [no prlimit here]'}`,
  async (t) => {
    const { path, remove } = temporaryDirectory();
    t.teardown(remove);
    const script = fileURLToPath(new URL('./support/disk-full.js', import.meta.url));
    const { stdout } = await promisify(execFile)(process.execPath, [script, join(path, 'data')], {
      maxBuffer: 64 << 20,
    });
    const result = JSON.parse(stdout) as {
      whileFull: Record<string, number>;
      afterwards: Record<string, number>;
      [field: string]: unknown;
    };
    t.log(JSON.stringify(result));
    t.deepEqual(Object.keys(result.whileFull).sort(), ['Unavailable', 'ok'], 'every error is Unavailable');
    t.deepEqual(result.afterwards, { ok: 500 });
    const written = result.whileFull['ok'] ?? 0;
    t.true(written > 100);
    t.is(result['head'], written + 1, 'failed writes consume no revision');
    t.is(result['readable'], written);
    t.is(result['lost'], 0);
    t.is(result['end'], written + 501);
    t.is(result['total'], written + 500);
    t.is(result['watched'], result['compaction'] === 'ok' ? 500 : written + 500);
  },
);
