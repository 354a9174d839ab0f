import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StorageError } from '@keelson/core';
import { StorageMemory } from '@keelson/core/internal';
import { FakeClock, noMetrics, silentLogger } from '@keelson/core/runtime';
import type { Revision, Store } from '@keelson/core/storage-adapter';
import { LmdbStore } from '@keelson/storage-lmdb';
import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import { KnownStores } from '../../src/storage/known-stores.ts';
import { PlaneStore, startKey } from '../../src/storage/plane-store.ts';

const test = anyTest as TestFn<{ directory: string }>;
type Context = ExecutionContext<{ directory: string }>;

test.beforeEach(async (t) => {
  t.context.directory = await mkdtemp(join(tmpdir(), 'keelson-starts-'));
});

test.afterEach.always((t) => rm(t.context.directory, { recursive: true, force: true }));

interface Started {
  readonly store: LmdbStore;
  readonly plane: PlaneStore;
  create(name: string): Promise<Revision>;
}

/**
 * Starts the store of a server in `directory`. Its clock stands still, so no revision is recorded after the start.
 * `prepare` may change the store before it is used.
 */
async function started(t: Context, prepare: (store: Store) => void = () => {}): Promise<Started> {
  const { directory } = t.context;
  const store = new LmdbStore({ path: join(directory, 'store') });
  prepare(store);
  t.teardown(() => store.close());
  const plane = new PlaneStore({
    name: 'default',
    made: { store, adapter: 'lmdb' },
    reads: 'consistent',
    watchWindow: {},
    memory: new StorageMemory(new FakeClock()),
    clock: new FakeClock(),
    logger: silentLogger,
    metrics: noMetrics,
    known: new KnownStores({ directory, acceptNew: false }),
    configuration: '',
  });
  await plane.start();
  const create = async (name: string): Promise<Revision> => {
    const result = await store.write({ op: 'put', key: `/a/b/${name}`, value: Buffer.from(name), expect: 0 });
    return result.revision;
  };
  return { store, plane, create };
}

/** Ends the server as a kill does: what it has not recorded is never recorded. */
async function kill({ store, plane }: Started): Promise<void> {
  await store.close();
  await plane.storages.stop();
}

const copied = ({ context: { directory } }: Context) =>
  cp(join(directory, 'store'), join(directory, 'copy'), { recursive: true });

async function putBack({ context: { directory } }: Context): Promise<void> {
  await rm(join(directory, 'store'), { recursive: true });
  await cp(join(directory, 'copy'), join(directory, 'store'), { recursive: true });
}

test('an older copy in place of a store whose server was killed before it recorded a revision repeats no revision', async (t) => {
  const first = await started(t);
  await first.create('kept');
  await first.plane.stop();
  await copied(t);

  let lost = 0;
  for (let restore = 1; restore <= 2; restore += 1) {
    const second = await started(t);
    const before = lost;
    for (let i = 0; i < 20; i += 1) lost = await second.create(`lost-${i}`);
    t.true(lost > before + 20, `restore ${restore}`);
    const token = second.plane.tokens.encode({ revision: lost, after: '/a' }, 'b');
    await kill(second);
    await putBack(t);

    const third = await started(t);
    t.true(
      (await third.create('next')) > lost + 900_000,
      'there is room for the writes of the second that was not recorded',
    );
    t.is((await third.store.get('/a/b/kept')).entry?.value.toString(), 'kept');
    for (const revision of [lost - 19, lost]) {
      const stream = third.store.watch({ start: '/', end: '0' }, { after: revision });
      await t.throwsAsync(
        stream.then((batches) => batches[Symbol.asyncIterator]().next()),
        { code: 'Compacted' },
      );
      await t.throwsAsync(third.store.get('/a/b/kept', { revision }), { code: 'Compacted' });
    }
    if (restore === 1) t.throws(() => third.plane.tokens.decode(token, 'b'), { code: 'InvalidToken' });
    await kill(third);
    await putBack(t);
  }
});

test('kills of servers change neither the epoch nor what may be watched, however many follow each other', async (t) => {
  const first = await started(t);
  const kept = await first.create('kept');
  await kill(first);
  for (let i = 0; i < 10; i += 1) {
    const next = await started(t);
    t.is((await next.store.identity()).epoch, 1);
    const stream = await next.store.watch({ start: '/', end: '0' }, { after: kept });
    await next.create(`name-${i}`);
    await stream.close();
    await kill(next);
  }
});

test('the epoch is unchanged after a kill between the write of a start and the record of its revision', async (t) => {
  const record = join(t.context.directory, 'stores.json');
  const first = await started(t);
  await kill(first);
  const recorded = await readFile(record, 'utf8');
  for (let i = 0; i < 12; i += 1) {
    const next = await started(t);
    t.is((await next.store.identity()).epoch, 1);
    await kill(next);
    t.not(await readFile(record, 'utf8'), recorded);
    await writeFile(record, recorded);
  }
});

test('a record without a revision, of an earlier version, is used as it is and has one from then on', async (t) => {
  const record = join(t.context.directory, 'stores.json');
  await kill(await started(t));
  const { stores } = JSON.parse(await readFile(record, 'utf8')) as { stores: Record<string, { revision?: Revision }> };
  const { revision, ...former } = stores['default/lmdb'] ?? {};
  t.is(typeof revision, 'number');
  await writeFile(record, JSON.stringify({ stores: { 'default/lmdb': former } }));
  const second = await started(t);
  t.is((await second.store.identity()).epoch, 1);
  t.regex(await readFile(record, 'utf8'), /"revision"/);
  await kill(second);
});

test('a server starts on a store that cannot be written, and its epoch stays', async (t) => {
  const first = await started(t);
  await kill(first);
  const full = await started(t, (store) => {
    store.write = () => Promise.reject(new StorageError('Unavailable', 'the disk is full'));
  });
  t.is((await full.store.identity()).epoch, 1);
  await kill(full);
  const third = await started(t);
  t.is((await third.store.identity()).epoch, 1);
  await kill(third);
});

test('a damaged record of the start is removed, and is written again by the next start', async (t) => {
  await kill(await started(t));
  const second = await started(t, (store) => {
    const get = store.get.bind(store);
    store.get = async (key, options) => {
      const { entry, revision } = await get(key, options);
      return { entry: entry === undefined || key !== startKey ? entry : { ...entry, damaged: true }, revision };
    };
  });
  const removed = await second.store.currentRevision();
  await kill(second);
  const third = await started(t);
  t.is((await third.store.get(startKey)).entry?.createRevision, removed + 1);
  await kill(third);
});
