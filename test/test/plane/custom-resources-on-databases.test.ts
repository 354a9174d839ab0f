import { CustomResourceDefinition } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import type { ExecutionContext } from 'ava';
import { type ControlPlane, createControlPlane } from 'keelson';
import { databaseTest, etcdDatabase, type FaultDatabase, postgresDatabase } from '../../src/faults/databases.ts';

const resource = { group: 'example.com', version: 'v1', resource: 'boats' };

function definitionOf(field: string): CustomResourceDefinition {
  const spec = { type: 'object', properties: { [field]: { type: 'integer', default: 1 } } };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'boats.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'boats', kind: 'Boat' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', properties: { spec } } },
        },
      ],
    },
  };
}

async function start(t: ExecutionContext, storage: string): Promise<ControlPlane> {
  const plane = await createControlPlane({ storage, controllers: false });
  t.teardown(() => plane.close());
  return plane;
}

const boatsOf = (plane: ControlPlane) => plane.api.dynamic(resource).namespace('default');
const isServed = (plane: ControlPlane) => plane.registry.find(resource) !== undefined;

/** Two servers serve a definition as soon as it is established, and the same schema after a change. */
async function serveTogether(t: ExecutionContext, database: FaultDatabase): Promise<void> {
  const storage = database.storage({});
  const [a, b] = [await start(t, storage), await start(t, storage)];
  const definitions = a.client(CustomResourceDefinition);
  const read = () => definitions.get('boats.example.com');
  await definitions.create(definitionOf('oars'));
  await until(
    async () =>
      (await read()).status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True'),
    'established',
  );
  t.true(isServed(a) && isServed(b), 'both serve what is established');

  const boat = (name: string) => ({ apiVersion: 'example.com/v1', kind: 'Boat', metadata: { name }, spec: {} });
  await boatsOf(a).create(boat('one'));
  t.like(await boatsOf(b).get('one'), { spec: { oars: 1 } });

  const current = await read();
  await definitions.update({ ...current, spec: definitionOf('sails').spec });
  for (const plane of [a, b]) {
    await until(async () => {
      const found = (await boatsOf(plane).get('one')) as { spec?: Record<string, unknown> };
      return found.spec?.['sails'] === 1 && found.spec['oars'] === undefined;
    }, 'the changed schema is in effect');
  }
  t.like(await boatsOf(b).create(boat('two')), { spec: { sails: 1 } });

  const late = await start(t, storage);
  t.true(isServed(late), 'a server that starts serves the definition at once');
  await definitions.delete('boats.example.com');
  for (const plane of [a, b, late]) await until(async () => !isServed(plane), 'the kind is gone');
  await definitions.create(definitionOf('oars'));
  for (const plane of [a, b, late]) await until(async () => isServed(plane), 'the kind is served again');
  t.deepEqual((await boatsOf(b).list()).items, []);
}

const etcdTest = await databaseTest('etcd');
const postgresTest = await databaseTest('postgres');

etcdTest('two servers on one etcd serve a custom resource definition', async (t) => {
  t.timeout(180_000);
  await serveTogether(t, await etcdDatabase(t));
});

postgresTest('two servers on one PostgreSQL serve a custom resource definition', async (t) => {
  t.timeout(180_000);
  await serveTogether(t, await postgresDatabase(t));
});
