import assert from 'node:assert/strict';
import type { ResourceStorageCase } from '../harness.ts';
import {
  any,
  bodyOf,
  createPod,
  everything,
  exactly,
  keysOf,
  labelled,
  latest,
  named,
  names,
  podKey,
  podPrefix,
  putPod,
  removePod,
  stored,
  texts,
} from '../objects.ts';
import { failsWith } from '../waiting.ts';

const all = { at: latest, predicate: everything } as const;

export const listCases: readonly ResourceStorageCase[] = [
  {
    id: 'list.empty',
    title: 'an empty list has a revision, no objects, no bytes and no next page',
    async run({ pods }) {
      for (const at of [latest, any]) {
        const list = await pods.list(podPrefix, { at, predicate: everything, limit: 5 });
        assert.ok(list.revision > 0);
        assert.equal(list.count, 0);
        assert.equal(list.next, undefined);
        assert.equal(bodyOf(list), '');
      }
    },
  },
  {
    id: 'list.key-order',
    title: 'objects are in key order whatever the order of their creation',
    async run({ pods }) {
      for (const name of ['m', 'a', 'z', 'aa', 'a-b', 'a0', 'b']) await createPod(pods, 'n', name);
      assert.deepEqual(names(await pods.list(podPrefix, all)), ['a', 'a-b', 'a0', 'aa', 'b', 'm', 'z']);
    },
  },
  {
    id: 'list.same-value-again',
    title: 'repeated lists by a label contain the changes in between, and exact lists older states',
    async run({ pods }) {
      const apps = new Map<string, string>();
      const put = async (name: string, app: string) => {
        apps.set(name, app);
        return (await putPod(pods, 'n', name, { labels: { app } })).revision;
      };
      const expected = (app: string) => [...apps.keys()].filter((name) => apps.get(name) === app).sort();
      const ask = async () => {
        for (const app of ['web', 'db', 'none']) {
          for (let i = 0; i < 3; i++) {
            const list = await pods.list(podPrefix, { at: latest, predicate: labelled('app', app) });
            assert.deepEqual(names(list), expected(app));
          }
        }
      };
      for (let i = 0; i < 30; i++) await put(`x${i}`, i % 3 === 0 ? 'web' : 'db');
      await ask();
      const before = expected('web');
      const revision = await put('x4', 'web');
      await ask();
      await put('x0', 'db');
      await ask();
      await put('x30', 'web');
      await removePod(pods, 'n', 'x3');
      apps.delete('x3');
      await ask();
      for (let i = 0; i < 2; i++) {
        const list = await pods.list(podPrefix, { at: exactly(revision), predicate: labelled('app', 'web') });
        assert.deepEqual(names(list), [...before, 'x4'].sort());
      }
    },
  },
  {
    id: 'list.prefix-siblings',
    title: 'namespaces with a common prefix of their names are separate',
    async run({ pods }) {
      for (const namespace of ['a', 'ab', 'a-b', 'a0']) await createPod(pods, namespace, 'x');
      for (const namespace of ['a', 'ab', 'a-b', 'a0']) {
        assert.deepEqual(keysOf(await pods.list(`${podPrefix}${namespace}/`, all)), [podKey(namespace, 'x')]);
      }
      assert.equal((await pods.list(podPrefix, all)).count, 4);
    },
  },
  {
    id: 'list.namespace-counts',
    title: 'every namespace has exactly its objects among hundreds',
    async run({ pods }) {
      for (let i = 0; i < 600; i++) await createPod(pods, `n${i % 7}`, `x${i}`);
      for (let n = 0; n < 7; n++) {
        const list = await pods.list(`${podPrefix}n${n}/`, all);
        assert.equal(list.count, [...list.objects()].length);
        assert.equal(list.count, Math.ceil((600 - n) / 7));
        assert.ok(keysOf(list).every((key) => key.startsWith(`${podPrefix}n${n}/`)));
      }
    },
  },
  {
    id: 'list.one-key',
    title: 'a predicate for one key selects that object or none, within the prefix only',
    async run({ pods }) {
      for (const name of ['x', 'xx', 'x-']) await createPod(pods, 'a', name);
      const predicate = named(podKey('a', 'x'));
      const list = await pods.list(podPrefix, { at: latest, predicate });
      assert.deepEqual(names(list), ['x']);
      assert.equal(list.revision, await pods.currentRevision());
      assert.equal((await pods.list(`${podPrefix}b/`, { at: latest, predicate })).count, 0);
      assert.equal((await pods.list(podPrefix, { at: latest, predicate: named(podKey('a', 'y')) })).count, 0);
    },
  },
  {
    id: 'list.selector',
    title: 'a selector selects the matching objects, also after changes',
    async run({ pods }) {
      for (let i = 0; i < 30; i++) await createPod(pods, 'a', `x${i}`, { labels: { app: i % 3 === 0 ? 'web' : 'db' } });
      const select = async (value: string) =>
        names(await pods.list(podPrefix, { at: latest, predicate: labelled('app', value) }));
      assert.equal((await select('web')).length, 10);
      assert.deepEqual(await select('none'), []);
      await putPod(pods, 'a', 'x0', { labels: { app: 'db' } });
      await putPod(pods, 'a', 'x1', { labels: { app: 'web' } });
      const web = await select('web');
      assert.ok(!web.includes('x0') && web.includes('x1'));
      await removePod(pods, 'a', 'x1');
      assert.equal((await select('web')).length, 9);
    },
  },
  {
    id: 'list.bytes',
    title: 'the chunks are the stored objects, joined by commas',
    async run({ pods }) {
      for (let i = 0; i < 700; i++) await createPod(pods, `n${i % 3}`, `x${i}`, { text: 'ü'.repeat(i) });
      for (const prefix of [podPrefix, `${podPrefix}n1/`]) {
        const list = await pods.list(prefix, all);
        const expected = [...list.objects()].map((object) => object.json.toString()).join(',');
        assert.equal(bodyOf(list), expected);
        assert.equal(bodyOf(list), expected, 'also the second time');
      }
      await putPod(pods, 'n1', 'x4', { text: 'changed' });
      const list = await pods.list(podPrefix, all);
      const parsed = JSON.parse(`[${bodyOf(list)}]`) as { metadata: { name: string; resourceVersion: string } }[];
      assert.equal(parsed.length, 700);
      assert.deepEqual(
        parsed.map(({ metadata }) => metadata.resourceVersion),
        [...list.objects()].map((object) => String(object.revision)),
      );
    },
  },
  {
    id: 'list.representation',
    title: 'chunks in another encoding contain every object in it, usually encoded once per object',
    async run({ pods }) {
      for (let i = 0; i < 300; i++) await createPod(pods, 'a', `x${1000 + i}`, { text: String(i) });
      let made = 0;
      const counting = {
        id: 'counting',
        encode: (object: Parameters<typeof texts.encode>[0]) => {
          made++;
          return texts.encode(object);
        },
      };
      const list = await pods.list(podPrefix, all);
      const expected = Array.from({ length: 300 }, (_, i) => String(i));
      assert.deepEqual(JSON.parse(`[${bodyOf(list, counting)}]`), expected);
      assert.deepEqual(JSON.parse(`[${bodyOf(list, counting)}]`), expected);
      assert.equal(made, 300);
    },
  },
  {
    id: 'list.big-objects',
    title: 'large and small objects together are all in the chunks, in order',
    async run({ pods }) {
      const sizes = [10, 70_000, 10, 10, 200_000, 65_530, 65_536, 1, 300_000];
      for (const [i, size] of sizes.entries()) await createPod(pods, 'a', `x${i}`, { text: 'x'.repeat(size) });
      const list = await pods.list(podPrefix, all);
      for (const representation of [stored, texts]) {
        const parsed = JSON.parse(`[${bodyOf(list, representation)}]`) as (string | { spec: { text: string } })[];
        assert.deepEqual(
          parsed.map((item) => (typeof item === 'string' ? item : item.spec.text).length),
          sizes,
        );
      }
    },
  },
  {
    id: 'list.corrupt',
    title: 'a corrupt object fails lists that contain it, before their first byte, until it is deleted',
    async run({ pods, store }) {
      await createPod(pods, 'a', 'x');
      const bad = await store.inner.write({ op: 'put', key: podKey('b', 'bad'), value: Buffer.from('{}'), expect: 0 });
      assert.ok(bad.ok);
      const error = await failsWith('Corrupt', () => pods.list(podPrefix, all));
      assert.equal(error.key, podKey('b', 'bad'));
      await failsWith('Corrupt', () => pods.list(podPrefix, { at: latest, predicate: labelled('a', 'b') }));
      assert.equal((await pods.list(`${podPrefix}a/`, all)).count, 1);
      await store.inner.write({ op: 'delete', key: podKey('b', 'bad'), expect: bad.revision });
      assert.equal((await pods.list(podPrefix, all)).count, 1);
    },
  },
  {
    id: 'list.after-churn',
    title: 'after hundreds of creations and deletions exactly the remaining objects are listed',
    async run({ pods }) {
      const name = (i: number) => `x${String((i * 7919) % 300).padStart(4, '0')}`;
      const inGroups = async (from: number, to: number, act: (i: number) => Promise<unknown>) => {
        for (let i = from; i < to; i += 50) await Promise.all(Array.from({ length: 50 }, (_, j) => act(i + j)));
      };
      await inGroups(0, 300, (i) => createPod(pods, 'a', name(i)));
      await inGroups(0, 250, (i) => removePod(pods, 'a', name(i)));
      const list = await pods.list(podPrefix, all);
      const expected = Array.from({ length: 50 }, (_, i) => name(250 + i)).sort();
      assert.deepEqual(names(list), expected);
      assert.equal(JSON.parse(`[${bodyOf(list)}]`).length, 50);
      await inGroups(250, 300, (i) => removePod(pods, 'a', name(i)));
      assert.equal((await pods.list(podPrefix, all)).count, 0);
    },
  },
];
