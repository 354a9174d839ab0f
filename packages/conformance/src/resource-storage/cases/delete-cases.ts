import assert from 'node:assert/strict';
import type { ResourceStorageCase } from '../harness.ts';
import { createPod, latest, podJson, podKey, putPod, removePod, textOf } from '../objects.ts';
import { eventsAfter, failsWith } from '../waiting.ts';

const key = podKey('a', 'x');
const x = (text: string) => podJson('a', 'x', { text });

export const deleteCases: readonly ResourceStorageCase[] = [
  {
    id: 'delete.last-state',
    title: 'a deletion returns the last state at the revision of the deletion',
    async run({ pods }) {
      const created = await createPod(pods, 'a', 'x', { text: 'last' });
      const { outcome, object } = await pods.update(key, () => ({ do: 'delete' }));
      assert.equal(outcome, 'deleted');
      assert.equal(textOf(object), 'last');
      assert.ok(object.revision > created.revision);
      assert.equal(object.revision, await pods.currentRevision());
      assert.equal(object.value().metadata?.resourceVersion, String(object.revision));
      assert.equal(await pods.get(key, latest), undefined);
    },
  },
  {
    id: 'delete.missing',
    title: 'a deletion of a missing object is NotFound',
    async run({ pods }) {
      await failsWith('NotFound', () => pods.update(key, () => ({ do: 'delete' })));
    },
  },
  {
    id: 'delete.final-state',
    title: 'a final state that is given with the deletion is in the result and in the DELETED event',
    async run({ pods }) {
      const created = await createPod(pods, 'a', 'x', { text: 'before' });
      const { object } = await pods.update(key, () => ({ do: 'delete', json: x('final') }));
      assert.equal(textOf(object), 'final');
      assert.equal(await pods.get(key, latest), undefined);
      const events = await eventsAfter(pods, created.revision);
      assert.equal(events.at(-1), `DELETED x final@${object.revision}`);
    },
  },
  {
    id: 'delete.same-final-state',
    title: 'a final state equal to the stored one needs no additional write',
    async run({ pods }) {
      const created = await createPod(pods, 'a', 'x', { text: 'same' });
      const { object } = await pods.update(key, () => ({ do: 'delete', json: x('same') }));
      assert.deepEqual(await eventsAfter(pods, created.revision), [`DELETED x same@${object.revision}`]);
    },
  },
  {
    id: 'delete.conflict',
    title: 'after a concurrent change the decision is called again and the newest state is deleted',
    async run({ pods, others }) {
      await createPod(pods, 'a', 'x', { text: '1' });
      let asked = 0;
      const { object } = await pods.update(key, async () => {
        if (++asked === 1) await putPod(others, 'a', 'x', { text: '2' });
        return { do: 'delete' };
      });
      assert.equal(asked, 2);
      assert.equal(textOf(object), '2');
    },
  },
  {
    id: 'delete.stale-suggestion',
    title: 'a deletion based on an outdated state deletes the newest one, or is NotFound if the object was deleted',
    async run({ pods, others, store }) {
      await createPod(pods, 'a', 'x', { text: 'old' });
      await createPod(pods, 'a', 'y');
      await pods.get(key, latest);
      store.holdStreams();
      await putPod(others, 'a', 'x', { text: 'new' });
      await removePod(others, 'a', 'y');
      const { object } = await pods.update(key, () => ({ do: 'delete' }));
      assert.equal(textOf(object), 'new');
      await failsWith('NotFound', () => pods.update(podKey('a', 'y'), () => ({ do: 'delete' })));
    },
  },
  {
    id: 'delete.race',
    title: 'of two deletions of one object one succeeds and the other is NotFound',
    async run({ pods, others }) {
      await createPod(pods, 'a', 'x');
      const results = await Promise.allSettled(
        [pods, others, pods].map((storage) => storage.update(key, () => ({ do: 'delete' }))),
      );
      assert.equal(results.filter((result) => result.status === 'fulfilled').length, 1);
    },
  },
  {
    id: 'delete.corrupt',
    title: 'a corrupt object can be deleted by a decision that does not read it, and by no other',
    async run({ pods, store }) {
      await store.inner.write({ op: 'put', key, value: Buffer.from('nonsense'), expect: 0 });
      await failsWith('Corrupt', () =>
        pods.update(key, (current) => ({ do: 'write', json: x(String(textOf(current))) })),
      );
      const { outcome } = await pods.update(key, () => ({ do: 'delete' }));
      assert.equal(outcome, 'deleted');
      assert.equal(await pods.get(key, latest), undefined);
    },
  },
];
