import assert from 'node:assert/strict';
import { prefixRange } from '@keelson/core/storage-adapter';
import type { StoreCase } from '../harness.ts';
import { byteOrder } from '../model.ts';
import { countIs, everything, failsWith, listAll, listPages, put, remove } from '../store-driver.ts';
import { changesBetween } from '../watcher.ts';

async function storesKeys(store: Parameters<StoreCase['run']>[0]['store'], keys: readonly string[]): Promise<void> {
  for (const [i, key] of keys.entries()) await put(store, key, `v${i}`);
  const sorted = [...keys].sort(byteOrder);
  const listed = await listAll(store, everything);
  assert.deepEqual(listed.keys, sorted);
  for (const size of [1, 2, 3]) assert.deepEqual((await listPages(store, everything, size)).keys, sorted);
  for (const [i, key] of keys.entries()) {
    const { entry } = await store.get(key);
    assert.equal(entry?.key, key);
    assert.equal(Buffer.from(entry?.value ?? []).toString(), `v${i}`);
  }
}

const keyCase = (id: string, title: string, keys: readonly string[]): StoreCase => ({
  id,
  title,
  run: async ({ store }) => storesKeys(store, keys),
});

const valueCase = (id: string, title: string, value: () => Uint8Array): StoreCase => ({
  id,
  title,
  async run({ store }) {
    const expected = Buffer.from(value());
    const created = await put(store, '/a', value());
    const updated = await put(store, '/a', 'next', created);
    const { entry } = await store.get('/a', { revision: created });
    assert.ok(entry !== undefined && expected.equals(entry.value), 'the old value comes back byte for byte');
    const [, change] = await changesBetween(store, created - 1, updated);
    assert.ok(change?.prev !== undefined && expected.equals(Buffer.from(change.prev.value, 'latin1')), 'so does prev');
    const again = await put(store, '/a', value(), updated);
    const now = (await store.get('/a')).entry;
    assert.ok(now !== undefined && now.modRevision === again && expected.equals(now.value));
    const listed = await listAll(store, everything);
    assert.ok(expected.equals(Buffer.from(listed.entries[0]?.value ?? '', 'latin1')), 'and a list has it');
  },
});

const invalidKeys: readonly (readonly [string, (max: number) => string])[] = [
  ['an empty key', () => ''],
  ['a key with U+0000', () => '/a\u0000b'],
  ['a key that ends in U+0000', () => '/a\u0000'],
  ['a high surrogate without a low one', () => '/a\ud83d'],
  ['a low surrogate without a high one', () => '/\udc00/a'],
  ['one byte too many', (max) => `/${'k'.repeat(max)}`],
  ['few characters but too many bytes', (max) => `/${'€'.repeat(Math.ceil(max / 3))}`],
];

/** Keys are text in the order of its UTF-8 bytes, values are bytes. */
export const keyValueCases: readonly StoreCase[] = [
  valueCase('value.empty', 'a value may be empty', () => new Uint8Array(0)),
  valueCase('value.one-byte', 'a value may be a single zero byte', () => new Uint8Array(1)),
  valueCase('value.every-byte', 'a value with every byte is stored unchanged', () =>
    Uint8Array.from({ length: 1024 }, (_, i) => i & 255),
  ),
  valueCase('value.not-utf8', 'bytes that are not UTF-8 are stored unchanged', () =>
    Buffer.from([0xff, 0xfe, 0xc0, 0x80, 0xed, 0xa0]),
  ),
  valueCase('value.view', 'a view into a larger buffer is stored as the view', () => {
    const whole = Buffer.alloc(4096, 'outside');
    whole.fill('inside', 100, 200);
    return whole.subarray(100, 200);
  }),
  valueCase('value.page-sizes', 'a value slightly larger than a page is stored completely', () =>
    Buffer.alloc(4097, 'p'),
  ),
  valueCase('value.64k', 'a value of more than 64 KiB is stored completely', () => Buffer.alloc(65_537, 'q')),
  valueCase('value.megabyte', 'a value of a megabyte is stored completely', () => Buffer.alloc(1 << 20, 'm')),
  {
    id: 'value.maximum',
    title: 'a value of exactly the declared size is accepted, one byte more is TooLarge',
    async run({ store }) {
      const { maxValueBytes } = store.capabilities;
      const value = Buffer.alloc(maxValueBytes, 'z');
      await put(store, '/a', value);
      assert.ok(value.equals((await store.get('/a')).entry?.value ?? new Uint8Array(0)));
      await failsWith('TooLarge', () => put(store, '/b', Buffer.alloc(maxValueBytes + 1)));
      assert.equal((await store.get('/b')).entry, undefined);
    },
  },
  {
    id: 'value.sizes-in-a-row',
    title: 'each state of a key whose value grows and shrinks can be read',
    async run({ store }) {
      const sizes = [0, 1, 255, 256, 4000, 4096, 9000, 16_384, 100_000, 300, 0, 5000];
      const states: { revision: number; size: number }[] = [];
      let expect = 0;
      for (const size of sizes) {
        expect = await put(store, '/a', Buffer.alloc(size, String(size)), expect);
        states.push({ revision: expect, size });
      }
      for (const { revision, size } of states) {
        const { entry } = await store.get('/a', { revision });
        assert.ok(Buffer.alloc(size, String(size)).equals(entry?.value ?? Buffer.from('missing')), `${size} bytes`);
      }
    },
  },
  keyCase('key.order-prefix-siblings', 'a key sorts before keys that it is a prefix of', [
    '/a/b',
    '/a',
    '/ab',
    '/a0',
    '/a-b',
    '/a.b',
    '/a/b/c',
    '/a!',
    '/a/',
    '/A',
    '/a\u0001',
    '/aa/b',
  ]),
  keyCase('key.order-non-ascii', 'keys sort by bytes, not by locale', [
    '/z',
    '/é',
    '/e',
    '/ß',
    '/ss',
    '/Ω',
    '/я',
    '/中',
    '/文',
    '/\u007f',
    '/\u0080',
    '/\u07ff',
    '/\u0800',
  ]),
  keyCase('key.order-astral', 'code points above U+FFFF sort after all others, as their bytes do', [
    '/\u{1f600}',
    '/\uffff',
    '/\ue000',
    '/\ud7ff',
    '/\u{10000}',
    '/\u{10ffff}',
    '/\uffee',
    '/\u{1f600}/a',
    '/\ue000/a',
    '/\u{1f600}a',
  ]),
  keyCase('key.hostile-names', 'names that are special to JavaScript, paths, SQL or terminals are ordinary keys', [
    '/__proto__',
    '/constructor',
    '/toString',
    '/hasOwnProperty/x',
    '/..',
    '/../a',
    '/.',
    '/%2e%2e',
    '/a b',
    '/a\nb',
    '/a\tb',
    '/"',
    "/' or 1=1; drop table ks_obj; --",
    '/\\',
    '/*',
    '/?',
    '/$1',
    '/{}',
    '/a//b',
    '/a/../b',
    '/\u001b[31m',
    '/\u202e',
  ]),
  keyCase('key.no-normalization', 'keys that differ only in Unicode normalization or case are different keys', [
    '/\u00e9',
    '/e\u0301',
    '/E',
    '/e',
    '/\u212a',
    '/K',
    '/k',
  ]),
  {
    id: 'key.maximum',
    title: 'a key of exactly the declared size is accepted by every method',
    async run({ store }) {
      const { maxKeyBytes } = store.capabilities;
      assert.ok(maxKeyBytes >= 1024);
      const keys = ['a', 'b'].map((last) => `/${'k'.repeat(maxKeyBytes - 2)}${last}`);
      const euros = `/${'€'.repeat(Math.floor((maxKeyBytes - 1) / 3))}`;
      for (const key of [...keys, euros]) {
        const created = await put(store, key, 'x');
        const updated = await put(store, key, 'y', created);
        assert.equal((await store.get(key, { revision: created })).entry?.modRevision, created);
        assert.equal((await changesBetween(store, created, updated)).at(-1)?.key, key);
      }
      const longest = keys[0] as string;
      assert.equal((await listAll(store, { start: longest, startExclusive: true, end: '0' })).keys.length, 2);
      await remove(store, longest, (await store.get(longest)).entry?.modRevision ?? 0);
      assert.equal((await store.get(longest)).entry, undefined);
    },
  },
  ...invalidKeys.map(
    ([what, key], i): StoreCase => ({
      id: `key.invalid-${i + 1}`,
      title: `${what} is InvalidKey for every method`,
      async run({ store }) {
        const bad = key(store.capabilities.maxKeyBytes);
        await failsWith('InvalidKey', () => store.get(bad));
        await failsWith('InvalidKey', () => put(store, bad, 'x'));
        await failsWith('InvalidKey', () => store.write({ op: 'delete', key: bad, expect: 1 }));
        assert.deepEqual((await listAll(store, everything)).keys, []);
      },
    }),
  ),
  {
    id: 'key.prefix-range',
    title: 'the range of a prefix contains exactly the keys with that prefix',
    async run({ store }) {
      const keys = [
        '/core/pods/ns1/a',
        '/core/pods/ns1/b',
        '/core/pods/ns10/a',
        '/core/pods/ns1',
        '/core/podsx/a',
        '/core/pod/a',
        '/\u{1f600}/x',
        '/\ue000/x',
        '/\ud7ff/x',
      ];
      for (const key of keys) await put(store, key, 'x');
      for (const prefix of [
        '/core/pods/',
        '/core/pods/ns1/',
        '/core/pods/ns1',
        '/core/pod',
        '/\u{1f600}',
        '/\ud7ff',
        '/\ue000',
        '/',
      ]) {
        const expected = keys.filter((key) => key.startsWith(prefix)).sort(byteOrder);
        assert.deepEqual((await listAll(store, prefixRange(prefix))).keys, expected, prefix);
        await countIs(store, prefixRange(prefix), expected.length);
      }
    },
  },
];
