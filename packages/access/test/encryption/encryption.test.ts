import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type OpenedStore, registerStoreConformance, type StoreHarness } from '@keelson/conformance';
import { isStorageError, type KindDefinition } from '@keelson/core';
import { encryptionKeyOf, tokenSecretKey } from '@keelson/core/internal';
import { type Counter, FakeClock, noMetrics, silentLogger } from '@keelson/core/runtime';
import { type Entry, prefixRange, type Store } from '@keelson/core/storage-adapter';
import { builtinKinds } from '@keelson/kinds';
import { LmdbStore } from '@keelson/storage-lmdb';
import { MemoryStore } from '@keelson/storage-memory';
import test, { type ExecutionContext } from 'ava';
import { EncryptedStore } from '../../src/encryption/encrypted-store.ts';
import { Encryption } from '../../src/encryption/encryption.ts';
import { EncryptionConfig, parseEncryptionConfig } from '../../src/encryption/encryption-config.ts';
import { Rotation, storedResources } from '../../src/encryption/rotation.ts';
import { ValueCipher, writesPerDataKey } from '../../src/encryption/value-cipher.ts';

const kinds = builtinKinds as readonly KindDefinition[];
const secretOf = (byte: number) => Buffer.alloc(32, byte).toString('base64');
const key = (name: string, byte: number) => `{name: ${name}, secret: ${secretOf(byte)}}`;
const aesgcm = (...keys: string[]) => `{aesgcm: {keys: [${keys.join(', ')}]}}`;
const entry = (resources: string, ...providers: string[]) =>
  `{resources: [${resources}], providers: [${providers.join(', ')}]}`;
const text = (...entries: string[]) =>
  `apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources: [${entries.join(', ')}]\n`;
const parse = (...entries: string[]) => parseEncryptionConfig(Buffer.from(text(...entries)), kinds, 'config.yaml');
const unobserved = { sealed: () => {}, opened: () => {} };
const k1 = aesgcm(key('k1', 1));
const k2k1 = aesgcm(key('k2', 2), key('k1', 1));
const identity = '{identity: {}}';

// Every key of the suite is encrypted, whatever its form is.
const cipher = new ValueCipher('suite', Buffer.alloc(32, 9));
const always = { writer: cipher, readers: new Map([['suite', cipher]]), identity: false };
class EveryKey extends EncryptionConfig {
  override of() {
    return always;
  }
}
const wrap = (store: Store) => new EncryptedStore(store, new EveryKey([]), unobserved);

interface Opened extends OpenedStore {
  readonly inner: MemoryStore | LmdbStore;
  readonly clock: FakeClock;
}

function harness(
  name: string,
  make: (clock: FakeClock, path: string) => MemoryStore | LmdbStore,
): StoreHarness<Opened> {
  return {
    name,
    capabilities: wrap(make(new FakeClock(), '/nowhere')).capabilities,
    async open() {
      const folder = await mkdtemp(join(tmpdir(), 'keelson-encrypted-'));
      const clock = new FakeClock();
      const inner = make(clock, join(folder, 'data'));
      const store = wrap(inner);
      await store.ready();
      const dispose = async () => {
        await inner.close();
        await rm(folder, { recursive: true });
      };
      return { store, inner, clock, dispose };
    },
    async advance({ clock, inner }, ms) {
      clock.advance(ms);
      if (inner instanceof LmdbStore) await inner.settled();
    },
  };
}

registerStoreConformance(
  test.serial,
  harness('encrypted memory', (clock) => new MemoryStore({ clock })),
);
// What a store that copies its values changes is the same on LMDB; the nightly run has both.
if (process.env['KEELSON_TEST_FULL'] === '1') {
  registerStoreConformance(
    test.serial,
    harness('encrypted lmdb', (clock, path) => new LmdbStore({ path, clock })),
  );
}

async function memory(t: ExecutionContext, ...entries: string[]) {
  const clock = new FakeClock();
  const inner = new MemoryStore({ clock });
  await inner.ready();
  t.teardown(() => inner.close());
  return { clock, inner, store: new EncryptedStore(inner, parse(...entries), unobserved) };
}

const secret = '/core/secrets/ns/';
const put = (store: Store, name: string, value: string, expect = 0) =>
  store.write({ op: 'put', key: name, value: Buffer.from(value), expect });
const read = async (store: Store, name: string): Promise<Entry> => {
  const { entry: found } = await store.get(name);
  if (found === undefined) throw new Error(`${name} does not exist`);
  return found;
};
const textOf = ({ value }: Entry) => Buffer.from(value).toString();

test('values of configured resources are encrypted with the first provider, with a new nonce for every write', async (t) => {
  const { inner, store } = await memory(t, entry('secrets, "*.apps"', k2k1, identity), entry('"*."', identity, k1));
  await put(store, `${secret}a`, '{"x":"canary"}');
  await put(store, `${secret}b`, '{"x":"canary"}');
  await put(store, '/apps/deployments/ns/a', '{"x":"canary"}');
  await put(store, '/core/configmaps/ns/a', '{"x":"plain"}');
  await put(store, '/batch/jobs/ns/a', '{"x":"plain"}');
  await put(store, '!keelson/start', 'plain');
  const [a, b] = [await read(inner, `${secret}a`), await read(inner, `${secret}b`)];
  t.is(encryptionKeyOf(a.value), 'k2');
  t.false(textOf(a).includes('canary'));
  const body = (found: Entry) => Buffer.from(found.value).subarray(-30).toString('hex');
  t.not(body(a), body(b));
  t.is(encryptionKeyOf((await read(inner, '/apps/deployments/ns/a')).value), 'k2');
  for (const plain of ['/core/configmaps/ns/a', '/batch/jobs/ns/a', '!keelson/start'])
    t.regex(textOf(await read(inner, plain)), /plain/);
  t.is(textOf(await read(store, `${secret}a`)), '{"x":"canary"}');
  const lost = await put(store, `${secret}a`, '{}', 99);
  t.is(
    !lost.ok && lost.current && textOf(lost.current),
    '{"x":"canary"}',
    'a lost compare-and-set shows the plain value',
  );
});

test('a value that was moved, changed or encrypted with an unknown key is damaged, and names its key; others are read', async (t) => {
  const { inner, store } = await memory(t, entry('secrets', k1));
  await put(store, `${secret}a`, '{"x":1}');
  await put(store, `${secret}b`, '{"x":2}');
  await put(inner, `${secret}plain`, '{"x":3}');
  const sealed = (await read(inner, `${secret}a`)).value;
  const changed = Buffer.from(sealed);
  changed[changed.length - 20] = (changed[changed.length - 20] ?? 0) ^ 1;
  await inner.write({ op: 'put', key: `${secret}moved`, value: sealed, expect: 0 });
  await inner.write({ op: 'put', key: `${secret}z-changed`, value: changed, expect: 0 });
  await inner.write({ op: 'put', key: `${secret}zz-cut`, value: sealed.subarray(0, 40), expect: 0 });
  const damages = async () => {
    const found: string[] = [];
    for await (const chunk of store.list(prefixRange('/')))
      for (const { key: name, damage = 'sound', value } of chunk.entries)
        found.push(`${name.slice(secret.length)}: ${damage} ${value.length}`);
    return found;
  };
  const broken = 'cannot be decrypted with the key "k1": its bytes or the secret were changed 0';
  t.deepEqual(await damages(), [
    'a: sound 7',
    'b: sound 7',
    `moved: ${broken}`,
    'plain: is not encrypted, and the providers of its resource do not include identity 0',
    `z-changed: ${broken}`,
    `zz-cut: ${broken}`,
  ]);
  store.reconfigure(parse(entry('secrets', aesgcm(key('k2', 2)), identity)));
  t.is(
    (await damages())[0],
    'a: is encrypted with the key "k1", which --encryption-provider-config does not contain for its resource 0',
  );
  t.is((await damages())[3], 'plain: sound 7');
  store.reconfigure(parse(entry('configmaps', k1)));
  t.regex((await damages())[0] ?? '', /--encryption-provider-config has no entry for its resource/);
});

test('a watch has plain values before and after; a new configuration ends it when values could not be read', async (t) => {
  const { store } = await memory(t, entry('secrets', k1));
  const first = await put(store, `${secret}a`, '{"x":1}');
  await put(store, `${secret}a`, '{"x":2}', first.revision);
  const stream = await store.watch(prefixRange('/'), { after: first.revision, prevValue: true });
  const batches = stream[Symbol.asyncIterator]();
  const change = (await batches.next()).value?.changes[0];
  t.deepEqual([textOf(change.prev), textOf(change.entry)], ['{"x":1}', '{"x":2}']);
  const waiting = batches.next();
  store.reconfigure(parse(entry('secrets', k2k1)));
  await put(store, `${secret}b`, '{"x":3}');
  t.is(textOf((await waiting).value.changes[0].entry), '{"x":3}', 'nothing was unreadable, so the watch continues');
  store.reconfigure(parse(entry('secrets', k1)));
  t.true((await read(store, `${secret}b`)).damaged);
  const ended = t.throwsAsync(batches.next());
  store.reconfigure(parse(entry('secrets', k2k1)));
  t.true(isStorageError(await ended, 'EpochChanged'));
  t.is(textOf(await read(store, `${secret}b`)), '{"x":3}');
});

test('a watch decrypts the writes of other processes only, whatever the order of the writes is', async (t) => {
  const { inner } = await memory(t, entry('secrets', k1));
  let opened = 0;
  const observer = { sealed: () => {}, opened: () => (opened += 1) };
  const own = new EncryptedStore(inner, parse(entry('secrets', k1)), observer);
  const other = new EncryptedStore(inner, parse(entry('secrets', k1)), unobserved);
  const stream = await own.watch(prefixRange('/'), { after: await own.currentRevision() });
  const first = await put(own, `${secret}a`, '{"x":1}');
  t.false((await put(own, `${secret}b`, '{"x":0}', 7)).ok, 'a write that fails is not delivered');
  await put(own, `${secret}b`, '{"x":2}');
  await put(other, `${secret}a`, '{"x":3}', first.revision);
  const third = await put(own, `${secret}c`, '{"x":4}');
  await put(other, `${secret}c`, '{"x":5}', third.revision);
  const seen: string[] = [];
  for await (const { changes } of stream) {
    seen.push(...changes.map((change) => (change.entry === undefined ? '' : textOf(change.entry))));
    if (seen.length === 5) break;
  }
  t.deepEqual(seen, ['{"x":1}', '{"x":2}', '{"x":3}', '{"x":4}', '{"x":5}']);
  t.is(opened, 2);
});

test('a rotation rewrites what is not stored with the first provider, can be repeated, and keeps times of expiry', async (t) => {
  const { clock, inner, store } = await memory(t, entry('secrets', identity, k1), entry('configmaps', k1));
  for (let i = 0; i < 1200; i++) await put(store, `${secret}s${i}`, `{"x":${i}}`);
  await store.write({ op: 'put', key: `${secret}ttl`, value: Buffer.from('{}'), expect: 0, ttlMs: 1_000_000 });
  const before = await read(inner, `${secret}ttl`);
  await put(store, '/core/configmaps/ns/a', '{}');
  await put(inner, '/core/configmaps/ns/broken', 'keelson:enc:aesgcm:v1:k9:x');
  const rotate = async () => {
    const rotation = new Rotation(store, clock);
    await rotation.ended;
    return rotation.progress;
  };
  store.reconfigure(parse(entry('secrets, configmaps', k2k1, identity)));
  t.deepEqual(await storedResources(store), [
    { resource: 'configmaps', writesWith: 'k2', objects: { k1: 1, k9: 1 } },
    { resource: 'secrets', writesWith: 'k2', objects: { identity: 1201 } },
  ]);
  t.like(await rotate(), { state: 'done', checked: 1203, passed: 1203, rewritten: 1202, unreadable: 1 });
  t.like(await rotate(), { state: 'done', rewritten: 0 });
  t.deepEqual((await storedResources(store))[1]?.objects, { k2: 1201 });
  t.is(textOf(await read(store, `${secret}s77`)), '{"x":77}');
  t.is((await read(store, `${secret}ttl`)).expiresAt, before.expiresAt);
  store.reconfigure(parse(entry('secrets, configmaps', identity, k2k1)));
  t.like(await rotate(), { state: 'done', rewritten: 1202 });
  t.is(textOf(await read(inner, `${secret}s77`)), '{"x":77}', 'and back to values without encryption');
});

test('the secret of continue tokens is encrypted when anything is, with a key of any resource, and rotated', async (t) => {
  const { clock, inner, store } = await memory(t, entry('configmaps', identity, k1), entry('secrets', k2k1, identity));
  await put(inner, tokenSecretKey, 'secret');
  t.is(textOf(await read(store, tokenSecretKey)), 'secret', 'one from before the encryption is accepted');
  const keyAfterRotation = async () => {
    const rotation = new Rotation(store, clock);
    await rotation.ended;
    t.like(rotation.progress, { state: 'done', rewritten: 0 });
    t.is(textOf(await read(store, tokenSecretKey)), 'secret');
    return encryptionKeyOf((await read(inner, tokenSecretKey)).value);
  };
  t.is(await keyAfterRotation(), 'k2');
  store.reconfigure(parse(entry('secrets', k1), entry('configmaps', k2k1)));
  t.is(await keyAfterRotation(), 'k1');
  await put(inner, tokenSecretKey, 'planted', (await read(inner, tokenSecretKey)).modRevision);
  t.true((await read(store, tokenSecretKey)).damaged, 'without identity a plain one is refused');
  store.reconfigure(parse(entry('secrets', identity)));
  t.is(textOf(await read(store, tokenSecretKey)), 'planted');
});

test('a data key is used for a limited number of writes, and every process has its own', (t) => {
  const mine = new ValueCipher('k', Buffer.alloc(32, 1));
  const other = new ValueCipher('k', Buffer.alloc(32, 1));
  const salt = (sealed: Buffer) => sealed.subarray(24, 40).toString('hex');
  const value = Buffer.from('{}');
  const first = mine.seal('/a', value);
  t.is(salt(mine.seal('/a', value)), salt(first));
  t.not(salt(other.seal('/a', value)), salt(first));
  t.deepEqual(other.open('/a', first), value);
  t.is(other.open('/b', first), undefined);
  t.is(writesPerDataKey, 2 ** 20);
});

test('an invalid configuration is refused with the field and the remedy, never with a secret', (t) => {
  const cases: readonly (readonly [string, string])[] = [
    [text(), 'must contain at least one entry of resources'],
    [text(entry('secret', k1)), 'resources[0].resources[0]: no stored resource is named secret; did you mean secrets?'],
    [text(entry('deployments', k1)), 'no stored resource is named deployments; did you mean deployments.apps?'],
    [text(entry('"*"', k1)), 'use "*.*" for all resources'],
    [text(entry('tokenreviews.authentication.k8s.io', k1)), 'no stored resource is named tokenreviews'],
    [text(entry('secrets')), 'providers must contain at least one provider'],
    [text(entry('secrets', '{aescbc: {keys: []}}')), 'the provider aescbc is not supported; use aesgcm, or identity'],
    [text(entry('secrets', '{kms: {name: x}}')), 'the provider kms is not supported'],
    [text(entry('secrets', '{}')), 'must contain exactly one of aesgcm and identity'],
    [text(entry('secrets', '{aesgcm: {keys: []}}')), 'must contain at least one key'],
    [text(entry('secrets', aesgcm('{name: "a:b", secret: x}'))), 'keys[0].name must be 1 to 63 characters'],
    [text(entry('secrets', aesgcm('{name: a, secret: Y2FuYXJ5}'))), 'keys[0].secret must be 32 bytes in base64'],
    [text(entry('secrets', aesgcm(key('a', 1), key('a', 1)))), 'name a is used twice'],
    [
      text(entry('secrets', k1), entry('configmaps', aesgcm(key('k1', 2)))),
      'name k1 is also the name of another secret',
    ],
    ['kind: X', 'must contain an object with apiVersion: apiserver.config.k8s.io/v1'],
  ];
  for (const [content, expected] of cases) {
    const error = t.throws(() => parseEncryptionConfig(Buffer.from(content), kinds, 'c.yaml'), { name: 'UsageError' });
    t.true(error?.message.includes(expected), `${content}: ${error?.message}`);
    t.false(error?.message.includes('Y2FuYXJ5'));
  }
});

test('a changed file is used without a restart; an invalid one is reported and the previous one stays in use', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-encryption-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const configFile = join(folder, 'encryption.yaml');
  await writeFile(configFile, text(entry('secrets', k1)), { mode: 0o600 });
  const logged: string[] = [];
  const logger = { ...silentLogger, error: (message: string) => logged.push(message), child: () => logger };
  const clock = new FakeClock();
  let loaded = 0;
  const counter: Counter = { add: () => (loaded += 1) };
  const metrics = {
    ...noMetrics,
    counter: ({ name }: { name: string }) =>
      name.includes('reloads') ? counter : noMetrics.counter({ name, help: '' }),
  };
  const context = { kinds, clock, logger, metrics };
  const reload = async () => {
    const before = loaded;
    clock.advance(10_000);
    while (loaded === before) await new Promise(setImmediate);
  };
  const encryption = await Encryption.open({ configFile, ...context });
  const inner = new MemoryStore();
  await inner.ready();
  const store = encryption.wrap('default', inner);
  await put(store, `${secret}a`, '{}');
  await writeFile(configFile, `${text(entry('secrets', k2k1))}: canary`);
  await reload();
  await reload();
  t.deepEqual(logged, ['a changed file cannot be used, the previous content remains in use']);
  await put(store, `${secret}b`, '{}');
  await writeFile(configFile, text(entry('secrets', k2k1)));
  await reload();
  await put(store, `${secret}c`, '{}');
  const names = await Promise.all(
    ['a', 'b', 'c'].map(async (name) => encryptionKeyOf((await read(inner, secret + name)).value)),
  );
  t.deepEqual(names, ['k1', 'k1', 'k2']);
  await encryption.stop();
  await writeFile(configFile, 'secret: [canary');
  const error = await t.throwsAsync(Encryption.open({ configFile, ...context }), { name: 'UsageError' });
  t.is(error?.message, `--encryption-provider-config ${configFile} is not valid YAML`);
});
