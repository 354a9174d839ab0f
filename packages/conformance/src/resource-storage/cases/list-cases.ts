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
  nodeJson,
  nodeKey,
  notOlderThan,
  podKey,
  podPrefix,
  putPod,
  removePod,
  shown,
  stored,
  texts,
} from '../objects.ts';
import { failsWith, turns, withTime } from '../waiting.ts';

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
    title: 'objects come in key order whatever the order of their creation',
    async run({ pods }) {
      for (const name of ['m', 'a', 'z', 'aa', 'a-b', 'a0', 'b']) await createPod(pods, 'n', name);
      assert.deepEqual(names(await pods.list(podPrefix, all)), ['a', 'a-b', 'a0', 'aa', 'b', 'm', 'z']);
    },
  },
  {
    id: 'list.same-value-again',
    title: 'a list by a label that is asked again and again shows what changed in between, and older states as they were',
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
    title: 'namespaces whose names begin alike are not mixed',
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
    title: 'a predicate that names a key shows that object or none, within the prefix only',
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
    title: 'a selector shows the matching objects and follows their changes',
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
    title: 'the chunks are the objects as they are stored, joined by commas',
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
    title: 'chunks in another form are that form of every object, made once per object as a rule',
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
    title: 'big and small objects side by side are all in the chunks, in order',
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
    id: 'list.global-revision',
    title: 'the revision of a list is that of the whole store, not of the kind',
    async run({ pods, nodes }) {
      await createPod(pods, 'a', 'x');
      const node = await nodes.create(nodeKey('n'), nodeJson('n'));
      assert.equal((await pods.list(podPrefix, all)).revision, node.revision);
    },
  },
  {
    id: 'list.others-write',
    title: 'a consistent list sees what another process wrote before it began',
    async run({ pods, others, store }) {
      await pods.list(podPrefix, { at: any, predicate: everything });
      for (let i = 0; i < 20; i++) {
        store.holdStreams();
        const { revision } = await createPod(others, 'a', `x${i}`);
        const reading = pods.list(podPrefix, all);
        await turns(3);
        store.releaseStreams();
        const list = await reading;
        assert.equal(list.count, i + 1);
        assert.ok(list.revision >= revision);
      }
    },
  },
  {
    id: 'list.any-grows',
    title: 'a list of any state is a state that was, and once loaded it never goes back',
    async run({ pods, others }) {
      let revision = 0;
      for (let i = 0; i < 20; i++) {
        await createPod(others, 'a', `x${String(i).padStart(2, '0')}`);
        const list = await pods.list(podPrefix, { at: any, predicate: everything });
        assert.ok(list.revision >= revision);
        revision = list.revision;
        assert.equal(list.count, revision === 0 ? 0 : [...list.objects()].filter((object) => object.revision <= revision).length);
      }
    },
  },
  {
    id: 'list.not-older-than',
    title: 'a list not older than a revision has everything up to it, and waits for it',
    async run({ pods, others, clock }) {
      const first = await createPod(others, 'a', 'x');
      assert.equal((await pods.list(podPrefix, { at: notOlderThan(first.revision), predicate: everything })).count, 1);
      const waiting = pods.list(podPrefix, { at: notOlderThan(first.revision + 1), predicate: everything });
      await turns();
      await createPod(others, 'a', 'y');
      assert.equal((await withTime(clock, waiting)).count, 2);
      await failsWith('FutureRevision', () =>
        withTime(clock, pods.list(podPrefix, { at: notOlderThan(first.revision + 99), predicate: everything })),
      );
    },
  },
  {
    id: 'list.exact',
    title: 'an exact list is the state of that revision, object by object',
    async run({ pods }) {
      const states = new Map<number, string[]>();
      const remember = async () => {
        const list = await pods.list(podPrefix, all);
        states.set(list.revision, shown(list));
      };
      await remember();
      for (let i = 0; i < 12; i++) {
        await createPod(pods, `n${i % 3}`, `x${i}`, { text: 'new' });
        await remember();
      }
      for (let i = 0; i < 12; i += 2) {
        await putPod(pods, `n${i % 3}`, `x${i}`, { text: 'changed' });
        await remember();
      }
      for (let i = 0; i < 12; i += 3) {
        await removePod(pods, `n${i % 3}`, `x${i}`);
        await remember();
      }
      await createPod(pods, 'n0', 'x0', { text: 'again' });
      await remember();
      assert.equal(states.size, 24);
      for (const [revision, expected] of states) {
        const list = await pods.list(podPrefix, { at: exactly(revision), predicate: everything });
        assert.equal(list.revision, revision);
        assert.deepEqual(shown(list), expected);
      }
    },
  },
  {
    id: 'list.exact-between',
    title: 'an exact list at a revision of another kind is the state of this kind then',
    async run({ pods, nodes }) {
      await createPod(pods, 'a', 'x', { text: '1' });
      const between = await nodes.create(nodeKey('n'), nodeJson('n'));
      await putPod(pods, 'a', 'x', { text: '2' });
      const list = await pods.list(podPrefix, { at: exactly(between.revision), predicate: everything });
      assert.equal(list.revision, between.revision);
      assert.match(shown(list)[0] ?? '', / 1@/);
    },
  },
  {
    id: 'list.exact-selector',
    title: 'an exact list with a selector looks at the labels of then',
    async run({ pods }) {
      const then = await createPod(pods, 'a', 'x', { labels: { app: 'old' } });
      await putPod(pods, 'a', 'x', { labels: { app: 'new' } });
      const count = async (value: string) =>
        (await pods.list(podPrefix, { at: exactly(then.revision), predicate: labelled('app', value) })).count;
      assert.equal(await count('old'), 1);
      assert.equal(await count('new'), 0);
    },
  },
  {
    id: 'list.stays-a-snapshot',
    title: 'a list being read does not change when objects do',
    async run({ pods }) {
      for (let i = 0; i < 400; i++) await createPod(pods, 'a', `x${1000 + i}`, { text: 'before' });
      const list = await pods.list(podPrefix, all);
      const expected = bodyOf(await pods.list(podPrefix, all));
      const objects = list.objects()[Symbol.iterator]();
      const chunks = list.chunks(stored, ',')[Symbol.iterator]();
      const read: string[] = [];
      const pieces: Buffer[] = [];
      for (let i = 0; i < 400; i++) {
        const next = objects.next();
        if (next.done !== true) read.push(next.value.json.toString());
        if (i % 40 === 0) {
          const piece = chunks.next();
          if (piece.done !== true) pieces.push(piece.value);
        }
        await putPod(pods, 'a', `x${1399 - i}`, { text: 'after' });
        if (i % 3 === 0) await removePod(pods, 'a', `x${1000 + ((i * 7) % 400)}`).catch(() => {});
      }
      for (let piece = chunks.next(); piece.done !== true; piece = chunks.next()) pieces.push(piece.value);
      assert.equal(read.join(','), expected);
      assert.equal(Buffer.concat(pieces).toString(), expected);
    },
  },
  {
    id: 'list.corrupt',
    title: 'a corrupt object fails the lists it is in, before their first byte, until it is gone',
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
    title: 'thousands of creations and deletions leave exactly the objects that are left',
    async run({ pods }) {
      const name = (i: number) => `x${String((i * 7919) % 1500).padStart(4, '0')}`;
      const inGroups = async (from: number, to: number, act: (i: number) => Promise<unknown>) => {
        for (let i = from; i < to; i += 50) await Promise.all(Array.from({ length: 50 }, (_, j) => act(i + j)));
      };
      await inGroups(0, 1500, (i) => createPod(pods, 'a', name(i)));
      await inGroups(0, 1400, (i) => removePod(pods, 'a', name(i)));
      const list = await pods.list(podPrefix, all);
      const expected = Array.from({ length: 100 }, (_, i) => name(1400 + i)).sort();
      assert.deepEqual(names(list), expected);
      assert.equal(JSON.parse(`[${bodyOf(list)}]`).length, 100);
      await inGroups(1400, 1500, (i) => removePod(pods, 'a', name(i)));
      assert.equal((await pods.list(podPrefix, all)).count, 0);
    },
  },
];
