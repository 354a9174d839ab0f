import assert from 'node:assert/strict';
import type { ResourceStorageCase } from '../harness.ts';
import {
  bodyOf,
  createPod,
  everything,
  exactly,
  labelled,
  latest,
  names,
  nodeJson,
  nodeKey,
  pagesOf,
  podPrefix,
  putPod,
  removePod,
  shown,
} from '../objects.ts';
import { failsWith } from '../waiting.ts';

const name = (i: number) => `x${String(i).padStart(4, '0')}`;

async function fill(pods: Parameters<typeof createPod>[0], count: number, namespace = 'a') {
  for (let i = 0; i < count; i++) await createPod(pods, namespace, name(i), { labels: { third: String(i % 3 === 0) } });
}

export const pageCases: readonly ResourceStorageCase[] = [
  {
    id: 'page.all',
    title: 'pages of any size together are the whole list, none longer than the limit, the last without a next',
    async run({ pods }) {
      await fill(pods, 25);
      const whole = await pods.list(podPrefix, { at: latest, predicate: everything });
      for (const limit of [1, 2, 7, 24, 25, 26, 1000]) {
        const pages = await pagesOf(pods, podPrefix, limit);
        assert.equal(pages.length, Math.ceil(25 / limit));
        assert.ok(pages.every((page) => page.count <= limit && page.revision === whole.revision));
        assert.deepEqual(pages.flatMap(shown), shown(whole));
        assert.equal(pages.map((page) => bodyOf(page)).join(','), bodyOf(whole));
      }
    },
  },
  {
    id: 'page.remaining',
    title: 'the number of remaining objects of a page, if any, is correct',
    async run({ pods }) {
      await fill(pods, 10);
      let seen = 0;
      for (const page of await pagesOf(pods, podPrefix, 3)) {
        seen += page.count;
        if (page.next === undefined) assert.equal(page.remaining, undefined);
        else assert.equal(page.remaining, 10 - seen);
      }
    },
  },
  {
    id: 'page.snapshot',
    title: 'changes between pages are not visible: all pages have one state',
    async run({ pods }) {
      await fill(pods, 20);
      const whole = shown(await pods.list(podPrefix, { at: latest, predicate: everything }));
      let step = 0;
      const pages = await pagesOf(pods, podPrefix, 3, everything, async () => {
        if (step >= 9) return;
        await createPod(pods, 'a', `x00${step}5-new`);
        await createPod(pods, 'z', `new${step}`);
        await putPod(pods, 'a', name(19 - step), { text: 'changed' });
        await removePod(pods, 'a', name(10 + step));
        step++;
      });
      assert.ok(step >= 6);
      assert.deepEqual(pages.flatMap(shown), whole);
      assert.equal(new Set(pages.map((page) => page.revision)).size, 1);
    },
  },
  {
    id: 'page.last-key-deleted',
    title: 'a list continues after a key that has been deleted in the meantime',
    async run({ pods }) {
      await fill(pods, 6);
      const pages = await pagesOf(pods, podPrefix, 2, everything, async (page) => {
        await removePod(pods, 'a', names(page).at(-1) ?? '');
      });
      assert.deepEqual(pages.flatMap(names), [0, 1, 2, 3, 4, 5].map(name));
    },
  },
  {
    id: 'page.namespace',
    title: 'pages of a namespace contain no objects of the next one',
    async run({ pods }) {
      await fill(pods, 5, 'a');
      await fill(pods, 5, 'b');
      await fill(pods, 5, 'c');
      const pages = await pagesOf(pods, `${podPrefix}b/`, 2);
      assert.deepEqual(
        pages.map((page) => page.count),
        [2, 2, 1],
      );
      assert.ok(pages.flatMap(shown).every((text) => text.startsWith(`${podPrefix}b/`)));
    },
  },
  {
    id: 'page.selector',
    title: 'pages with a selector are full while enough objects match, and together contain every match once',
    async run({ pods }) {
      await fill(pods, 40);
      const predicate = labelled('third', 'true');
      const whole = shown(await pods.list(podPrefix, { at: latest, predicate }));
      assert.equal(whole.length, 14);
      for (const limit of [1, 3, 14, 20]) {
        const pages = await pagesOf(pods, podPrefix, limit, predicate);
        assert.deepEqual(pages.flatMap(shown), whole);
        for (const page of pages.slice(0, -2)) assert.equal(page.count, limit);
        for (const page of pages) assert.equal(page.remaining, undefined);
      }
    },
  },
  {
    id: 'page.rare',
    title: 'a selector that matches the last of a thousand objects finds it on the first page',
    async run({ pods }) {
      await fill(pods, 999);
      await createPod(pods, 'a', 'z', { labels: { rare: 'yes' } });
      const list = await pods.list(podPrefix, { at: latest, predicate: labelled('rare', 'yes'), limit: 1 });
      assert.deepEqual(names(list), ['z']);
      assert.equal(list.next, undefined);
    },
  },
  {
    id: 'page.no-match',
    title: 'a selector without matches results in one empty page',
    async run({ pods }) {
      await fill(pods, 100);
      const list = await pods.list(podPrefix, { at: latest, predicate: labelled('rare', 'yes'), limit: 10 });
      assert.equal(list.count, 0);
      assert.equal(list.next, undefined);
    },
  },
  {
    id: 'page.at-latest',
    title: 'a list can be continued at the latest state from its last key',
    async run({ pods }) {
      await fill(pods, 6);
      const first = await pods.list(podPrefix, { at: latest, predicate: everything, limit: 2 });
      assert.ok(first.next !== undefined);
      await removePod(pods, 'a', name(2));
      await createPod(pods, 'a', 'y');
      const resume = { revision: 'latest', after: first.next.after } as const;
      const rest = await pods.list(podPrefix, { at: latest, predicate: everything, resume });
      assert.deepEqual(names(rest), [name(3), name(4), name(5), 'y']);
      assert.ok(rest.revision > first.revision);
    },
  },
  {
    id: 'page.exact',
    title: 'an exact list is paged like any other',
    async run({ pods }) {
      await fill(pods, 6);
      const then = await pods.currentRevision();
      await removePod(pods, 'a', name(0));
      const first = await pods.list(podPrefix, { at: exactly(then), predicate: everything, limit: 4 });
      assert.deepEqual(names(first), [0, 1, 2, 3].map(name));
      assert.equal(first.next?.revision, then);
      const second = await pods.list(podPrefix, { at: latest, predicate: everything, limit: 4, resume: first.next });
      assert.deepEqual(names(second), [4, 5].map(name));
      assert.equal(second.revision, then);
    },
  },
  {
    id: 'page.compacted',
    title: 'a page whose state is compacted is still correct or fails with Compacted, and the latest state continues',
    async run({ pods, others, store, cached }) {
      await fill(pods, 6);
      const whole = shown(await pods.list(podPrefix, { at: latest, predicate: everything }));
      const first = await pods.list(podPrefix, { at: latest, predicate: everything, limit: 2 });
      assert.ok(first.next !== undefined);
      await putPod(others, 'a', name(4), { text: 'changed' });
      await store.inner.compact(await store.inner.currentRevision());
      const resume = first.next;
      const options = { at: latest, predicate: everything, resume } as const;
      if (cached) assert.deepEqual([...shown(first), ...shown(await pods.list(podPrefix, options))], whole);
      else await failsWith('Compacted', () => pods.list(podPrefix, options));
      const rest = await pods.list(podPrefix, { ...options, resume: { revision: 'latest', after: resume.after } });
      assert.equal(rest.count, 4);
    },
  },
  {
    id: 'page.quiet-kind',
    title: 'a chunked list of an unchanged kind remains valid after hundreds of changes of another',
    async run({ pods, nodes }) {
      await fill(pods, 4);
      const whole = shown(await pods.list(podPrefix, { at: latest, predicate: everything }));
      const pages = await pagesOf(pods, podPrefix, 2, everything, async () => {
        const names = Array.from({ length: 500 }, (_, i) => `n${i}`);
        await Promise.all(names.map((name) => nodes.create(nodeKey(name), nodeJson(name))));
      });
      assert.deepEqual(pages.flatMap(shown), whole);
    },
  },
];
