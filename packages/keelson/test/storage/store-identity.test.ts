import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isStorageError } from '@keelson/core';
import { tokenSecretKey } from '@keelson/core/internal';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import type { Store, StoreIdentity } from '@keelson/core/storage-adapter';
import { MemoryStore } from '@keelson/storage-memory';
import anyTest, { type TestFn } from 'ava';
import { GuardedStore } from '../../src/storage/guarded-store.ts';
import { KnownStores, StoreIdentityError } from '../../src/storage/known-stores.ts';
import { StoreTokens, sharedSecret } from '../../src/storage/store-tokens.ts';

const test = anyTest as TestFn<{ directory: string }>;

test.beforeEach(async (t) => {
  t.context.directory = await mkdtemp(join(tmpdir(), 'keelson-known-'));
});

test.afterEach.always((t) => rm(t.context.directory, { recursive: true, force: true }));

const one: StoreIdentity = { storeId: 'one', epoch: 1 };
const two: StoreIdentity = { storeId: 'two', epoch: 1 };
const known = (directory: string, acceptNew = false) => new KnownStores({ directory, acceptNew });

test('the first store of a name is recorded and accepted after a restart', async (t) => {
  const directory = join(t.context.directory, 'made');
  t.is((await known(directory).recognize('default', 'lmdb', one)).outcome, 'first');
  t.is((await known(directory).recognize('default', 'lmdb', one)).outcome, 'same');
  t.is((await stat(join(directory, 'stores.json'))).mode & 0o777, 0o600);
});

test('another store of the same name is rejected with both identities and the fix, also on the next attempt', async (t) => {
  const { directory } = t.context;
  await known(directory).recognize('default', 'lmdb', one);
  for (let i = 0; i < 2; i += 1) {
    const error = await t.throwsAsync(known(directory).recognize('default', 'lmdb', two), {
      instanceOf: StoreIdentityError,
    });
    t.regex(
      error?.message ?? '',
      /the lmdb store named default is not the one used before: this one is two, .*stores\.json knows one/,
    );
    t.regex(error?.message ?? '', /--accept-new-store/);
  }
  t.is((await known(directory).recognize('default', 'lmdb', one)).outcome, 'same');
});

test('after the new store has been accepted once, the old one is rejected', async (t) => {
  const { directory } = t.context;
  await known(directory).recognize('default', 'lmdb', one);
  t.deepEqual(await known(directory, true).recognize('default', 'lmdb', two), {
    outcome: 'accepted',
    before: one,
    seen: 0,
  });
  t.is((await known(directory).recognize('default', 'lmdb', two)).outcome, 'same');
  await t.throwsAsync(known(directory).recognize('default', 'lmdb', one), { instanceOf: StoreIdentityError });
});

test('records are separate by name and adapter, also hostile ones, and concurrent checks lose no record', async (t) => {
  const { directory } = t.context;
  const stores = known(directory);
  const outcomes = await Promise.all([
    stores.recognize('default', 'lmdb', one),
    stores.recognize('default', 'postgres', two),
    stores.recognize('events', 'lmdb', two),
    stores.recognize('__proto__', 'x', two),
  ]);
  t.deepEqual(
    outcomes.map(({ outcome }) => outcome),
    ['first', 'first', 'first', 'first'],
  );
  t.is((await known(directory).recognize('default', 'postgres', two)).outcome, 'same');
  t.is(
    Object.keys((JSON.parse(await readFile(join(directory, 'stores.json'), 'utf8')) as { stores: object }).stores)
      .length,
    4,
  );
});

test('a new epoch of the same store is reported and recorded', async (t) => {
  const { directory } = t.context;
  await known(directory).recognize('default', 'lmdb', one);
  t.deepEqual(await known(directory).recognize('default', 'lmdb', { ...one, epoch: 2 }), {
    outcome: 'restored',
    before: one,
    seen: 0,
  });
  t.is((await known(directory).recognize('default', 'lmdb', { ...one, epoch: 2 })).outcome, 'same');
});

test('the revision of a store is recorded for the next start, also in another epoch, unless a new store is accepted', async (t) => {
  const { directory } = t.context;
  await known(directory).note('default', 'lmdb', 5);
  t.is(
    (await known(directory).recognize('default', 'lmdb', one)).seen,
    0,
    'nothing is taken down of a store that is not known',
  );
  await known(directory).note('default', 'lmdb', 7);
  t.is((await known(directory).recognize('default', 'lmdb', one)).seen, 7);
  t.like(await known(directory).recognize('default', 'lmdb', { ...one, epoch: 2 }), { outcome: 'restored', seen: 7 });
  t.is((await known(directory).recognize('default', 'lmdb', { ...one, epoch: 2 })).seen, 7);
  t.is((await known(directory, true).recognize('default', 'lmdb', { ...one, epoch: 2 })).seen, 0);
  t.is((await known(directory, true).recognize('default', 'lmdb', two)).seen, 0);
});

test('a damaged record is rejected and not overwritten', async (t) => {
  const { directory } = t.context;
  for (const text of [
    '',
    'x',
    '{}',
    '{"stores":{"default/lmdb":{"storeId":1,"epoch":1}}}',
    '{"stores":{"a":null}}',
    '{"stores":{"a":{"storeId":"x","epoch":1,"revision":"7"}}}',
  ]) {
    await writeFile(join(directory, 'stores.json'), text);
    const error = await t.throwsAsync(known(directory).recognize('default', 'lmdb', one), {
      instanceOf: StoreIdentityError,
    });
    t.regex(error?.message ?? '', /stores\.json is damaged; remove it/);
    t.is(await readFile(join(directory, 'stores.json'), 'utf8'), text);
  }
});

/** A store in memory whose identity is what the test says. */
function posing(): { readonly store: Store; identity: StoreIdentity } {
  const store = new MemoryStore();
  const posed = { store, identity: one };
  store.identity = async () => posed.identity;
  return posed;
}

test('a store that is replaced while it is in use is rejected until the recorded one is back', async (t) => {
  const posed = posing();
  const guarded = new GuardedStore(posed.store, silentLogger, () => t.fail());
  guarded.approve(await guarded.identity());
  await guarded.write({ op: 'put', key: '/a/b/c', value: Buffer.from('x'), expect: 0 });
  posed.identity = two;
  const refused = (error: unknown) => isStorageError(error, 'Unavailable') && /two, not one/.test(error.message);
  const calls: (() => Promise<unknown>)[] = [
    () => guarded.identity(),
    () => guarded.write({ op: 'put', key: '/a/b/d', value: Buffer.from('x'), expect: 0 }),
    () => guarded.get('/a/b/c'),
    () => guarded.currentRevision(),
    () => guarded.count({ start: '/', end: '0' }),
    () => guarded.watch({ start: '/', end: '0' }, { after: 1 }),
    () => guarded.compact(1),
    () => guarded.compactedRevision(),
    async () => guarded.list({ start: '/', end: '0' }),
  ];
  for (const call of calls) t.true(refused(await t.throwsAsync(call())), String(call));
  posed.identity = one;
  await guarded.identity();
  t.is((await guarded.get('/a/b/c')).entry?.value.toString(), 'x');
  t.is((await posed.store.get('/a/b/d')).entry, undefined);
});

test('a store whose revision is below the recorded one is rejected with a message that lists the fixes', async (t) => {
  const guarded = new GuardedStore(new MemoryStore(), silentLogger, () => t.fail());
  const error = await t.throwsAsync(guarded.passOver(77), { code: 'Unavailable' });
  t.regex(error?.message ?? '', /at revision 1, but has been at 77: .*restore the newer one, or .*--accept-new-store/);
});

test('the recorded revision of a store is the newest of writes, reads and the watch of all keys', async (t) => {
  const store = new MemoryStore();
  const guarded = new GuardedStore(store, silentLogger, () => t.fail());
  await store.write({ op: 'put', key: '/a/b/c', value: Buffer.from('x'), expect: 0 });
  t.is(guarded.seen, 0);
  t.is(await guarded.currentRevision(), guarded.seen);
  const own = await guarded.write({ op: 'put', key: '/a/b/d', value: Buffer.from('x'), expect: 0 });
  t.is(guarded.seen, own.revision);
  const stream = await guarded.watch({ start: '/', end: '0' }, { after: own.revision });
  const others = await store.write({ op: 'put', key: '/a/b/e', value: Buffer.from('x'), expect: 0 });
  await stream[Symbol.asyncIterator]().next();
  t.is(guarded.seen, others.revision);
  await stream.close();
});

test('a new epoch is reported once and invalidates continue tokens', async (t) => {
  const posed = posing();
  const tokens = new StoreTokens({ clock: systemClock, configuration: '' });
  const epochs: number[] = [];
  const guarded = new GuardedStore(posed.store, silentLogger, (identity) => {
    epochs.push(identity.epoch);
    tokens.rebind(identity);
  });
  t.throws(() => tokens.encode({ revision: 5, after: '/a' }, 'b'), { code: 'Unavailable' });
  guarded.approve(await guarded.identity());
  tokens.begin(await sharedSecret(guarded, silentLogger), one);
  const token = tokens.encode({ revision: 5, after: '/a' }, 'b');
  t.deepEqual(tokens.decode(token, 'b'), { revision: 5, after: '/a' });
  posed.identity = { ...one, epoch: 2 };
  await guarded.identity();
  await guarded.identity();
  t.deepEqual(epochs, [2]);
  t.throws(() => tokens.decode(token, 'b'), { code: 'InvalidToken' });
});

test('servers that start concurrently share one secret, which lists and watches of objects do not contain', async (t) => {
  const store = new MemoryStore();
  const secrets = await Promise.all(Array.from({ length: 8 }, () => sharedSecret(store, silentLogger)));
  t.is(new Set(secrets.map((secret) => secret.toString('hex'))).size, 1);
  t.is(secrets[0]?.byteLength, 32);
  t.false(tokenSecretKey.startsWith('/'));
  t.deepEqual(await sharedSecret(store, silentLogger), secrets[0]);
  const value = Buffer.from('keelson:enc:aesgcm:v1:k1:what no configured key decrypts');
  const { entry } = await store.get(tokenSecretKey);
  await store.write({ op: 'put', key: tokenSecretKey, value, expect: entry?.modRevision ?? 0 });
  const replaced = await Promise.all([0, 1].map(() => sharedSecret(store, silentLogger)));
  t.deepEqual(replaced[0], replaced[1]);
  t.false(
    secrets.some((secret) => secret.equals(replaced[0] ?? secret)),
    'encrypted bytes are no secret',
  );
});

test('after a write of the secret with an unknown outcome the secret is read before a retry', async (t) => {
  for (const happened of [true, false]) {
    const store = new MemoryStore();
    const write = store.write.bind(store);
    let writes = 0;
    store.write = async (op, options) => {
      writes += 1;
      if (writes > 1) return write(op, options);
      if (happened) await write(op, options);
      const { StorageError } = await import('@keelson/core');
      throw new StorageError('OutcomeUnknown', 'lost');
    };
    const secret = await sharedSecret(store, silentLogger);
    t.is(writes, happened ? 1 : 2);
    t.deepEqual(Buffer.from((await store.get(tokenSecretKey)).entry?.value ?? []), secret);
  }
});

test('a record that is not a valid secret is rejected', async (t) => {
  const store = new MemoryStore();
  await store.write({ op: 'put', key: tokenSecretKey, value: Buffer.from('short'), expect: 0 });
  await t.throwsAsync(sharedSecret(store, silentLogger), { code: 'Corrupt' });
});
