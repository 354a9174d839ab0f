import { deepEqual, equal, ok } from 'node:assert/strict';
import type { ClientCase } from '../harness.ts';

export const discoveryCases: readonly ClientCase[] = [
  {
    id: 'discovery.rows',
    title: 'discovery reports kind, scope and verbs of every resource, and no subresource',
    async run({ client }) {
      const rows = await client.discover();
      const part = rows.find(({ group, resource }) => group === 'suite.keelson.dev' && resource === 'parts');
      deepEqual([part?.version, part?.kind, part?.namespaced], ['v1', 'Part', true]);
      deepEqual(
        [...(part?.verbs ?? [])],
        ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
      );
      const zone = rows.find(({ resource }) => resource === 'zones');
      equal(zone?.namespaced, false);
      ok(rows.every(({ resource }) => !resource.includes('/')));
    },
  },
  {
    id: 'discovery.shared-storage',
    title: 'resources with the same objects share a storage identifier, all others have their own',
    async run({ client }) {
      const rows = await client.discover();
      const storageOf = (group: string) => rows.find((row) => row.group === group && row.resource === 'parts')?.storage;
      const expected = { group: 'suite.keelson.dev', resource: 'parts' };
      deepEqual([storageOf('suite.keelson.dev'), storageOf('old.suite.keelson.dev')], [expected, expected]);
      deepEqual(rows.find(({ resource }) => resource === 'zones')?.storage, {
        group: 'suite.keelson.dev',
        resource: 'zones',
      });
    },
  },
  {
    id: 'discovery.other-versions',
    title: 'an object that is written through one API version is read through the other, in its version',
    async run({ client, parts, part, namespaces }) {
      const made = await parts.create(part('a', { colour: 'red' }));
      const old = client
        .dynamic({ group: 'old.suite.keelson.dev', version: 'v1beta1', resource: 'parts' })
        .namespace(namespaces[0]);
      const read = await old.get('a');
      deepEqual([read.apiVersion, read.metadata?.uid], ['old.suite.keelson.dev/v1beta1', made.metadata?.uid]);
      await old.patch('a', 'merge', { spec: { colour: 'blue' } });
      equal((await parts.get('a')).spec?.colour, 'blue');
    },
  },
];
