import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { StatusReason } from '@keelson/core';
import { refused, versionOf } from '../expectations.ts';
import type { ClientCase } from '../harness.ts';

export const updateCases: readonly ClientCase[] = [
  {
    id: 'update.replaces',
    title: 'an update replaces the object, raises resourceVersion and, for the spec, the generation',
    async run({ parts, part }) {
      const made = await parts.create(part('a', { colour: 'red', settings: { k: 'v' } }));
      const changed = await parts.update({ ...made, spec: { replicas: 3 } });
      deepEqual(changed.spec, { replicas: 3 });
      ok(versionOf(changed) > versionOf(made));
      deepEqual([changed.metadata?.generation, changed.metadata?.uid], [2, made.metadata?.uid]);
      deepEqual(await parts.get('a'), changed);
    },
  },
  {
    id: 'update.stale-version',
    title: 'an update of a version that is no longer the newest is a 409 Conflict',
    async run({ parts, part }) {
      const made = await parts.create(part('a'));
      await parts.update({ ...made, spec: { replicas: 2 } });
      const status = await refused(() => parts.update({ ...made, spec: { replicas: 3 } }), 409, StatusReason.Conflict);
      match(status.message ?? '', /the object has been modified/);
      equal((await parts.get('a')).spec?.replicas, 2);
    },
  },
  {
    id: 'update.without-version',
    title: 'an update without a resourceVersion replaces the newest version',
    async run({ parts, part }) {
      await parts.create(part('a'));
      await parts.update(part('a', { replicas: 2 }));
      equal((await parts.update(part('a', { replicas: 3 }))).spec?.replicas, 3);
    },
  },
  {
    id: 'update.other-uid',
    title: 'an update with the uid of another object is a 409',
    async run({ parts, part }) {
      await parts.create(part('a'));
      const foreign = part('a', {}, { uid: '00000000-0000-4000-8000-000000000000' });
      await refused(() => parts.update(foreign), 409, StatusReason.Conflict);
    },
  },
  {
    id: 'update.missing-object',
    title: 'an update of a missing object is a 404',
    async run({ parts, part }) {
      await refused(() => parts.update(part('a')), 404, StatusReason.NotFound);
    },
  },
  {
    id: 'update.nothing-changed',
    title: 'an update without changes keeps the resourceVersion',
    async run({ parts, part }) {
      const made = await parts.create(part('a', { colour: 'red' }));
      deepEqual(await parts.update(made), made);
    },
  },
  {
    id: 'update.leaves-the-status',
    title: 'an update never changes the status',
    async run({ parts, part }) {
      const made = await parts.create(part('a'));
      await parts.updateSubresource('a', 'status', { ...made, status: { phase: 'Ready' } } as never);
      const changed = await parts.update({ ...part('a', { replicas: 2 }), status: { phase: 'Lost' } });
      deepEqual([changed.status?.phase, changed.spec?.replicas], ['Ready', 2]);
    },
  },
  {
    id: 'update.dry-run',
    title: 'a dry run of an update stores nothing',
    async run({ parts, part }) {
      const made = await parts.create(part('a'));
      equal((await parts.update({ ...made, spec: { replicas: 5 } }, { dryRun: true })).spec?.replicas, 5);
      deepEqual(await parts.get('a'), made);
    },
  },
  {
    id: 'update.invalid',
    title: 'an invalid update is a 422 and stores nothing',
    async run({ parts, part }) {
      const made = await parts.create(part('a'));
      await refused(() => parts.update({ ...made, spec: { replicas: -1 } }), 422, StatusReason.Invalid);
      deepEqual(await parts.get('a'), made);
    },
  },
  {
    id: 'update.in-the-objects-namespace',
    title: 'a client without a namespace updates in the namespace of the object',
    async run({ allParts, parts, part }) {
      const made = await parts.create(part('a'));
      await allParts.update({ ...made, spec: { replicas: 9 } });
      equal((await parts.get('a')).spec?.replicas, 9);
    },
  },
];
