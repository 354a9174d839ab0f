import { deepEqual, equal, ok } from 'node:assert/strict';
import { type KubeObject, type Status, StatusReason } from '@keelson/core';
import { namesOf, refused, versionOf } from '../expectations.ts';
import type { ClientCase } from '../harness.ts';

export const deleteCases: readonly ClientCase[] = [
  {
    id: 'delete.answers-with-the-uid',
    title: 'a delete that removes immediately returns Success with name and uid',
    async run({ parts, part }) {
      const made = await parts.create(part('a'));
      const status = (await parts.delete('a')) as Status;
      deepEqual([status.kind, status.status], ['Status', 'Success']);
      deepEqual(status.details, { name: 'a', group: 'suite.keelson.dev', kind: 'parts', uid: made.metadata?.uid });
      await refused(() => parts.get('a'), 404, StatusReason.NotFound);
      await refused(() => parts.delete('a'), 404, StatusReason.NotFound);
    },
  },
  {
    id: 'delete.finalizers-hold',
    title: 'an object with a finalizer is removed by the write that removes the last finalizer',
    async run({ parts, part }) {
      await parts.create(part('a', {}, { finalizers: ['example.com/hold'] }));
      const held = (await parts.delete('a')) as KubeObject;
      ok(held.metadata?.deletionTimestamp);
      equal((await parts.get('a')).metadata?.deletionTimestamp, held.metadata?.deletionTimestamp);
      await parts.patch('a', 'merge', { metadata: { finalizers: null } });
      await refused(() => parts.get('a'), 404, StatusReason.NotFound);
    },
  },
  {
    id: 'delete.preconditions',
    title: 'preconditions on uid and resourceVersion are checked',
    async run({ parts, part }) {
      const made = await parts.create(part('a'));
      const uid = '00000000-0000-4000-8000-000000000000';
      await refused(() => parts.delete('a', { preconditions: { uid } }), 409, StatusReason.Conflict);
      const resourceVersion = String(versionOf(made) - 1);
      await refused(() => parts.delete('a', { preconditions: { resourceVersion } }), 409, StatusReason.Conflict);
      const right = { uid: made.metadata?.uid ?? '', resourceVersion: String(versionOf(made)) };
      await parts.delete('a', { preconditions: right });
      await refused(() => parts.get('a'), 404, StatusReason.NotFound);
    },
  },
  {
    id: 'delete.dry-run',
    title: 'a dry run of a delete removes nothing',
    async run({ parts, part }) {
      const made = await parts.create(part('a'));
      await parts.delete('a', { dryRun: true });
      deepEqual(await parts.get('a'), made);
      await parts.deleteCollection({ dryRun: true });
      deepEqual(await parts.get('a'), made);
    },
  },
  {
    id: 'delete.propagation',
    title: 'the propagation policy results in a finalizer of the deleted object',
    async run({ parts, part }) {
      await parts.create(part('a', {}, { finalizers: ['example.com/hold'] }));
      const orphaning = (await parts.delete('a', { propagationPolicy: 'Orphan' })) as KubeObject;
      deepEqual(orphaning.metadata?.finalizers, ['example.com/hold', 'orphan']);
      await parts.create(part('b', {}, { finalizers: ['example.com/hold'] }));
      const waiting = (await parts.delete('b', { propagationPolicy: 'Foreground' })) as KubeObject;
      deepEqual(waiting.metadata?.finalizers, ['example.com/hold', 'foregroundDeletion']);
    },
  },
  {
    id: 'delete.contradicting-options',
    title: 'contradictory options are a 422',
    async run({ parts, part }) {
      await parts.create(part('a'));
      const options = { propagationPolicy: 'Orphan', orphanDependents: true } as const;
      await refused(() => parts.delete('a', options), 422, StatusReason.Invalid);
      ok(await parts.get('a'));
    },
  },
  {
    id: 'delete.collection',
    title: 'a collection is deleted according to its selectors, in one namespace',
    async run({ parts, allParts, part, namespaces: [first, second] }) {
      for (const name of ['a', 'b', 'c'])
        await parts.create(part(name, {}, { labels: { group: name === 'c' ? 'y' : 'x' } }));
      await allParts.namespace(second).create(part('a', {}, { labels: { group: 'x' } }));
      await parts.deleteCollection({ labelSelector: 'group=x' });
      deepEqual(namesOf((await allParts.list()).items), [`${first}/c`, `${second}/a`]);
      await parts.deleteCollection({ fieldSelector: 'metadata.name=c' });
      deepEqual(namesOf((await allParts.list()).items), [`${second}/a`]);
      await parts.deleteCollection();
    },
  },
  {
    id: 'delete.and-create-again',
    title: 'a name can be reused after its deletion, for an object with a new uid',
    async run({ parts, part }) {
      const first = await parts.create(part('a'));
      await parts.delete('a');
      const second = await parts.create(part('a'));
      ok(second.metadata?.uid !== first.metadata?.uid);
      ok(versionOf(second) > versionOf(first) + 1);
    },
  },
];
