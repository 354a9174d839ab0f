import { deepEqual, equal } from 'node:assert/strict';
import { type KubeObject, StatusReason } from '@keelson/core';
import { refused, versionOf } from '../expectations.ts';
import type { ClientCase } from '../harness.ts';
import type { PartObject } from '../suite-kinds.ts';

type Count = KubeObject & { spec?: { replicas?: number } };

const coat = (colour: string) => ({ kind: 'Coat', apiVersion: 'suite.keelson.dev/v1', colour });

export const subresourceCases: readonly ClientCase[] = [
  {
    id: 'subresource.status',
    title: 'the status is written through its subresource, which changes neither the spec nor the generation',
    async run({ parts, part }) {
      const made = await parts.create(part('a', { replicas: 2 }));
      const body: PartObject = { ...made, spec: { replicas: 9 }, status: { phase: 'Ready' } };
      const written = (await parts.updateSubresource('a', 'status', body)) as PartObject;
      deepEqual([written.spec?.replicas, written.status?.phase, written.metadata?.generation], [2, 'Ready', 1]);
      const patched = (await parts.patchSubresource('a', 'status', 'merge', { status: { replicas: 2 } })) as PartObject;
      deepEqual(patched.status, { phase: 'Ready', replicas: 2 });
      deepEqual(await parts.getSubresource('a', 'status'), await parts.get('a'));
      await refused(() => parts.updateSubresource('a', 'status', body), 409, StatusReason.Conflict);
    },
  },
  {
    id: 'subresource.projection',
    title: 'a projection is read, replaced and patched, and changes only its part of the object',
    async run({ parts, part }) {
      await parts.create(part('a', { replicas: 2, colour: 'red' }));
      const count = (await parts.getSubresource('a', 'count')) as Count;
      deepEqual([count.kind, count.spec?.replicas], ['Count', 2]);
      await parts.updateSubresource('a', 'count', { ...count, spec: { replicas: 3 } } as Count);
      const patched = (await parts.patchSubresource('a', 'count', 'merge', { spec: { replicas: 5 } })) as Count;
      equal(patched.spec?.replicas, 5);
      deepEqual((await parts.get('a')).spec, { replicas: 5, colour: 'red' });
    },
  },
  {
    id: 'subresource.projection-refuses',
    title: 'a projection rejects invalid values and outdated versions',
    async run({ parts, part }) {
      const made = await parts.create(part('a'));
      const count = (replicas: number, resourceVersion?: string): Count => ({
        kind: 'Count',
        apiVersion: 'suite.keelson.dev/v1',
        metadata: { name: 'a', ...(resourceVersion === undefined ? {} : { resourceVersion }) },
        spec: { replicas },
      });
      await refused(() => parts.updateSubresource('a', 'count', count(-1)), 422, StatusReason.Invalid);
      await parts.updateSubresource('a', 'count', count(2));
      const stale = String(versionOf(made));
      await refused(() => parts.updateSubresource('a', 'count', count(3, stale)), 409, StatusReason.Conflict);
    },
  },
  {
    id: 'subresource.action',
    title: 'an action is a POST that changes its object; a dry run of it does not',
    async run({ parts, part }) {
      await parts.create(part('a', { colour: 'red' }));
      await parts.createSubresource('a', 'coat', coat('green') as KubeObject, { dryRun: true });
      equal((await parts.get('a')).spec?.colour, 'red');
      const painted = (await parts.createSubresource('a', 'coat', coat('blue') as KubeObject)) as PartObject;
      equal(painted.spec?.colour, 'blue');
      equal((await parts.get('a')).spec?.colour, 'blue');
    },
  },
  {
    id: 'subresource.missing',
    title: 'a subresource that does not exist, or of an object that does not exist, is a 404',
    async run({ parts, part }) {
      await parts.create(part('a'));
      await refused(() => parts.getSubresource('a', 'nothing'), 404, StatusReason.NotFound);
      await refused(() => parts.getSubresource('b', 'count'), 404, StatusReason.NotFound);
      await refused(() => parts.patchSubresource('b', 'status', 'merge', {}), 404, StatusReason.NotFound);
    },
  },
  {
    id: 'subresource.wrong-method',
    title: 'an operation that a subresource does not have is a 405',
    async run({ parts, part }) {
      await parts.create(part('a'));
      await refused(() => parts.getSubresource('a', 'coat'), 405, StatusReason.MethodNotAllowed);
      await refused(() => parts.createSubresource('a', 'count', { kind: 'Count' }), 405, StatusReason.MethodNotAllowed);
    },
  },
];
