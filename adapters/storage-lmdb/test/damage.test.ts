import { copyFileSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Random } from '@keelson/conformance';
import { isStorageError } from '@keelson/core';
import type { Entry, Store } from '@keelson/core/storage-adapter';
import test, { type ExecutionContext } from 'ava';
import { open } from 'lmdb';
import { LmdbStore } from '../src/index.ts';
import { temporaryDirectory } from './support/lmdb-harness.ts';

const everything = { start: '/', end: '0' };
const keys = 600;

function directory(t: ExecutionContext): string {
  const { path, remove } = temporaryDirectory();
  t.teardown(remove);
  return path;
}

const storedValue = (i: number) => Buffer.from(`value-${i}-${'v'.repeat(i % 97 === 0 ? 9000 : 100 + (i % 300))}`);
const keyOf = (i: number) => `/k/${String(i).padStart(4, '0')}`;

/** A closed store with some hundred keys, large and small, and some history. */
async function filled(t: ExecutionContext): Promise<string> {
  const path = directory(t);
  const store = new LmdbStore({ path });
  await store.ready();
  await Promise.all(
    Array.from({ length: keys }, async (_, i) => {
      const created = await store.write({ op: 'put', key: keyOf(i), value: Buffer.from('first'), expect: 0 });
      return store.write({ op: 'put', key: keyOf(i), value: storedValue(i), expect: created.revision });
    }),
  );
  await store.close();
  return path;
}

async function listed(store: Store): Promise<Map<string, Entry>> {
  const found = new Map<string, Entry>();
  for await (const { entries } of store.list(everything)) for (const entry of entries) found.set(entry.key, entry);
  return found;
}

/** Changes one byte of every occurrence of the text in the file. */
function damage(path: string, text: string): void {
  const file = join(path, 'data.mdb');
  const bytes = readFileSync(file);
  const at = Buffer.from(text);
  let count = 0;
  for (let place = bytes.indexOf(at); place !== -1; place = bytes.indexOf(at, place + 1), count++) {
    bytes[place] = (bytes[place] ?? 0) ^ 0x20;
  }
  if (count === 0) throw new Error(`${text} is not in the file`);
  writeFileSync(file, bytes);
}

test('a record with a wrong checksum is listed and read as damaged, and can be deleted; others are unaffected', async (t) => {
  const path = await filled(t);
  damage(path, 'value-7-');
  const store = new LmdbStore({ path });
  await store.ready();
  t.teardown(() => store.close());
  const all = await listed(store);
  t.is(all.size, keys);
  t.deepEqual(
    [...all.values()].filter((entry) => entry.damaged).map(({ key }) => key),
    [keyOf(7)],
  );
  const { entry } = await store.get(keyOf(7));
  t.true(entry?.damaged);
  t.is(entry?.value.byteLength, 0);
  t.deepEqual(Buffer.from((await store.get(keyOf(8))).entry?.value ?? []), storedValue(8));
  t.true((await store.write({ op: 'delete', key: keyOf(7), expect: entry?.modRevision ?? 0 })).ok);
  t.is((await listed(store)).size, keys - 1);
});

for (const [what, damaged] of [
  ['cut in half', (file: string, size: number) => truncateSync(file, size / 2)],
  ['that lacks its last pages', (file: string, size: number) => truncateSync(file, size - 64 * 1024)],
  ['cut within its first page', (file: string) => truncateSync(file, 1000)],
  [
    'with zeros in place of pages',
    (file: string, size: number) => {
      const bytes = readFileSync(file);
      bytes.fill(0, Math.floor(size / 4), Math.floor((3 * size) / 4));
      writeFileSync(file, bytes);
    },
  ],
] as const) {
  test(`a data file ${what} is rejected with a message that names the file and the damage`, async (t) => {
    const path = await filled(t);
    const file = join(path, 'data.mdb');
    damaged(file, statSync(file).size);
    const before = readFileSync(file);
    await t.throwsAsync(new LmdbStore({ path }).ready(), {
      code: 'Corrupt',
      message: /data\.mdb is damaged and cannot be used; restore a back-up\. Found: .*page|end/,
    });
    t.true(readFileSync(file).equals(before), 'the file was changed');
  });
}

const pageBytes = 4096;

/** The offsets of the head of each node of a leaf page: sizes, flags, key size (the format: `src/check-pages.ts`). */
function nodesOf(bytes: Buffer, page: number): number[] {
  const at = page * pageBytes;
  const isLeaf = bytes.readUInt16LE(at + 18) === 2 && bytes.readBigUInt64LE(at) === BigInt(page);
  const count = isLeaf ? bytes.readUInt16LE(at + 20) / 2 : 0;
  return Array.from({ length: count }, (_, i) => at + 24 + bytes.readUInt16LE(at + 24 + 2 * i));
}

for (const [what, change] of [
  ['a kind that is not that of a meta page', (bytes: Buffer) => bytes.writeUInt16LE(0, 18)],
  ['flags that a file of this store never has', (bytes: Buffer) => bytes.writeUInt8(bytes.readUInt8(53) | 0x20, 53)],
  [
    'an older transaction in the newest meta page',
    (bytes: Buffer) => {
      const [a, b] = [152, pageBytes + 152] as const;
      const newest = bytes.readBigUInt64LE(a) > bytes.readBigUInt64LE(b) ? a : b;
      bytes.writeBigUInt64LE(bytes.readBigUInt64LE(newest) - 2n, newest);
    },
  ],
  [
    'a number of commits that is too short',
    (bytes: Buffer) => {
      for (let page = 2; page < bytes.byteLength / pageBytes; page++) {
        const nodes = nodesOf(bytes, page);
        const isMainTree = nodes.some((node) => bytes.readUInt16LE(node + 4) === 2);
        for (const node of nodes) if (isMainTree && bytes.readUInt16LE(node) === 8) bytes.writeUInt16LE(0, node);
      }
    },
  ],
  [
    'nodes of a form that only trees with several values for a key have',
    (bytes: Buffer) => {
      for (let page = 2; page < bytes.byteLength / pageBytes; page++)
        for (const node of nodesOf(bytes, page)) bytes.writeUInt16LE(bytes.readUInt16LE(node + 4) | 4, node + 4);
    },
  ],
] as const) {
  test(`a data file with ${what} is rejected`, async (t) => {
    const path = await filled(t);
    const file = join(path, 'data.mdb');
    const bytes = readFileSync(file);
    change(bytes);
    writeFileSync(file, bytes);
    await t.throwsAsync(new LmdbStore({ path }).ready(), { code: 'Corrupt', message: /damaged.*Found: / });
  });
}

const seed = Number(process.env['KEELSON_SEED']) || Math.floor(Math.random() * 2 ** 31);

test('any damaged byte of the file is found: the start is rejected, or every record is correct or marked as damaged', async (t) => {
  t.log(`KEELSON_SEED=${seed}`);
  const random = new Random(seed);
  const original = await filled(t);
  const size = statSync(join(original, 'data.mdb')).size;
  const outcomes = { refused: 0, damaged: 0, unharmed: 0 };
  for (let round = 0; round < 60; round++) {
    const path = directory(t);
    const file = join(path, 'data.mdb');
    copyFileSync(join(original, 'data.mdb'), file);
    const bytes = readFileSync(file);
    // Most changed bits are in structures: the meta pages, and the heads of pages and of nodes.
    const page = random.below(size / pageBytes);
    const nodes = nodesOf(bytes, page);
    const part = random.below(4);
    const place =
      part === 0
        ? random.below(2) * pageBytes + random.below(176)
        : part === 1 && nodes.length > 0
          ? random.pick(nodes) + random.below(8)
          : page * pageBytes + random.below(part === 2 ? 64 : pageBytes);
    bytes[place] = (bytes[place] ?? 0) ^ (1 << random.below(8));
    writeFileSync(file, bytes);
    const store = new LmdbStore({ path });
    try {
      await store.ready({ readOnly: true });
    } catch (error) {
      if (!isStorageError(error, 'Corrupt')) throw error;
      outcomes.refused++;
      await store.close();
      continue;
    }
    const all = await listed(store);
    t.is(all.size, keys, `byte ${place}`);
    // A record whose key is damaged is listed under another key, marked as damaged.
    const sound = [...all].filter(([, entry]) => !entry.damaged);
    const numbers = new Map(Array.from({ length: keys }, (_, i) => [keyOf(i) as string, i]));
    const wrong = sound.filter(([key, { value }]) => !storedValue(numbers.get(key) ?? -1).equals(value));
    t.deepEqual(wrong, [], `byte ${place}`);
    if (sound.length < keys) outcomes.damaged++;
    else outcomes.unharmed++;
    await store.close();
  }
  t.log(JSON.stringify(outcomes));
  t.true(outcomes.refused > 0);
});

test('a store of format 1, whose records have no checksums, is read and written', async (t) => {
  const path = directory(t);
  const binary = { encoding: 'binary', keyEncoding: 'binary' } as const;
  const root = open<Buffer, Buffer>({ path, noSubdir: false, maxDbs: 8, ...binary });
  const uint64 = (...numbers: number[]) =>
    Buffer.concat(numbers.map((number) => Buffer.from(number.toString(16).padStart(16, '0'), 'hex')));
  for (const name of ['hist', 'ttl']) root.openDB({ name, ...binary });
  const identity = { format: 1, storeId: 'former', epoch: 1 };
  await root
    .openDB<Buffer, Buffer>({ name: 'meta', ...binary })
    .put(Buffer.from('identity'), Buffer.from(JSON.stringify(identity)));
  const row = Buffer.concat([uint64(2, 2, 0), Buffer.from('old')]);
  await root.openDB<Buffer, Buffer>({ name: 'obj', ...binary }).put(Buffer.from('/a'), row);
  const commit = Buffer.concat([Buffer.from('00000001000002', 'hex'), Buffer.from('/a')]);
  await root.openDB<Buffer, Buffer>({ name: 'log', ...binary }).put(uint64(2), commit);
  await root.close();
  for (const expected of ['old', 'new']) {
    const store = new LmdbStore({ path });
    await store.ready();
    t.is((await store.identity()).storeId, 'former');
    const { entry } = await store.get('/a');
    t.is(Buffer.from(entry?.value ?? []).toString(), expected);
    for await (const { changes } of await store.watch(everything, { after: 1 })) {
      t.deepEqual(
        changes.slice(0, 1).map(({ type, key }) => [type, key]),
        [['create', '/a']],
      );
      break;
    }
    if (expected === 'old')
      t.is((await store.write({ op: 'put', key: '/a', value: Buffer.from('new'), expect: 2 })).revision, 3);
    await store.close();
  }
});

test('a store is opened for reading without being created or changed', async (t) => {
  const path = await filled(t);
  const before = readFileSync(join(path, 'data.mdb'));
  const store = new LmdbStore({ path, history: { minChanges: 0, minAgeMs: 0 } });
  await store.ready({ readOnly: true });
  t.is((await listed(store)).size, keys);
  await t.throwsAsync(store.write({ op: 'put', key: '/x', value: Buffer.from('x'), expect: 0 }), {
    code: 'Unavailable',
  });
  await store.close();
  t.true(readFileSync(join(path, 'data.mdb')).equals(before), 'the file was changed');
  const none = join(directory(t), 'none');
  await t.throwsAsync(new LmdbStore({ path: none }).ready({ readOnly: true }), {
    code: 'Unavailable',
    message: /there is no store in/,
  });
  t.is(statSync(none, { throwIfNoEntry: false }), undefined);
});
