import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { FakeClock, silentLogger } from '@keelson/core/runtime';
import {
  ClusterRoleBinding,
  defaultFlowSchemas,
  defaultPriorityLevels,
  FlowSchema,
  PriorityLevelConfiguration,
} from '@keelson/kinds';
import { until } from '@keelson/test-support';
import Router from '@koa/router';
import test from 'ava';
import { FlowControlObjects } from '../../src/control-plane/flow-control-objects.ts';
import { type ControlPlane, createControlPlane, type RequestState } from '../../src/index.ts';
import { sharedStore } from '../support/shared-store.ts';

const namesOf = (objects: readonly { readonly metadata?: { readonly name?: string } }[]) =>
  objects.map(({ metadata }) => metadata?.name).sort();

async function danglingOf(plane: ControlPlane, name: string) {
  const { items } = await plane.client(FlowSchema).list({ fieldSelector: `metadata.name=${name}` });
  return items[0]?.status?.conditions?.find(({ type }) => type === 'Dangling');
}

test('the objects of Kubernetes exist once a plane has a server, and deleted ones again within a minute', async (t) => {
  const clock = new FakeClock();
  const plane = await createControlPlane({ storage: 'memory:', clock, controllers: false });
  t.teardown(() => plane.close());
  const schemas = plane.client(FlowSchema);
  const levels = plane.client(PriorityLevelConfiguration);
  t.deepEqual((await schemas.list()).items, [], 'a plane without a server needs none');
  await plane.handler();
  await until(async () => (await danglingOf(plane, 'catch-all'))?.status === 'False', 'the state is reported');
  t.deepEqual(namesOf((await schemas.list()).items), namesOf(defaultFlowSchemas));
  t.deepEqual(namesOf((await levels.list()).items), namesOf(defaultPriorityLevels));
  await schemas.delete('probes');
  await levels.delete('workload-low');
  await until(async () => (await danglingOf(plane, 'service-accounts'))?.status === 'True', 'the level is missing');
  t.like(await danglingOf(plane, 'service-accounts'), {
    reason: 'NotFound',
    message:
      'This FlowSchema references the PriorityLevelConfiguration object named "workload-low" ' +
      'but there is no such object',
  });
  clock.advance(60_000);
  await until(async () => (await danglingOf(plane, 'service-accounts'))?.status === 'False', 'the level is back');
  await until(async () => namesOf((await schemas.list()).items).includes('probes'), 'the schema is back');
});

test('a start restores the spec of a default object, unless its annotation says otherwise', async (t) => {
  const store = sharedStore(t);
  const shares = async (plane: ControlPlane, name: string) =>
    (await plane.client(PriorityLevelConfiguration).get(name)).spec.limited?.nominalConcurrencyShares;
  const served = async () => {
    const plane = await createControlPlane({ storage: store, controllers: false });
    await plane.handler();
    await until(async () => (await danglingOf(plane, 'catch-all')) !== undefined, 'the objects are applied');
    return plane;
  };
  const first = await served();
  const change = async (name: string, annotation: string) => {
    const levels = first.client(PriorityLevelConfiguration);
    const { spec, metadata } = await levels.get(name);
    const limited = spec.limited && { ...spec.limited, nominalConcurrencyShares: 77 };
    const annotations = { 'apf.kubernetes.io/autoupdate-spec': annotation };
    await levels.update({ metadata: { ...metadata, annotations }, spec: { ...spec, ...(limited ? { limited } : {}) } });
  };
  await change('workload-low', 'true');
  await change('workload-high', 'false');
  await first.close();
  const second = await served();
  t.teardown(() => second.close());
  await until(async () => (await shares(second, 'workload-low')) === 100, 'the spec is restored');
  t.is(await shares(second, 'workload-high'), 77);
});

test('a flow schema of a user applies to the next requests, until it is deleted', async (t) => {
  const plane = await createControlPlane({
    controllers: false,
    authenticateToken: (token) => ({ user: { name: token, groups: ['system:authenticated'] } }),
  });
  t.teardown(() => plane.close());
  await plane.client(ClusterRoleBinding).create({
    metadata: { name: 'all' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:authenticated' }],
  });
  const released: (() => void)[] = [];
  const router = new Router<RequestState>({ prefix: '/slow' });
  router.get('/', async (ctx) => {
    await new Promise<void>((resolve) => released.push(resolve));
    ctx.body = 'done';
  });
  const handler = await plane.handler({ routes: [router] });
  const server = createServer(handler.listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const slow = (user: string) =>
    fetch(`http://127.0.0.1:${port}/slow`, { headers: { authorization: `Bearer ${user}` } }).then(
      ({ status }) => status,
    );
  /** The status of a request of a user while another one of the same user runs. */
  const second = async (user: string) => {
    const first = slow(user);
    await until(() => released.length === 1, 'the first request runs');
    const next = slow(user);
    await Promise.race([next, until(() => released.length === 2, 'the second request runs')]);
    for (const release of released.splice(0)) release();
    t.is(await first, 200);
    return next;
  };
  t.is(await second('jane'), 200);
  await plane.client(PriorityLevelConfiguration).create({
    metadata: { name: 'narrow' },
    spec: {
      type: 'Limited',
      limited: { nominalConcurrencyShares: 0, borrowingLimitPercent: 0, limitResponse: { type: 'Reject' } },
    },
  });
  await plane.client(FlowSchema).create({
    metadata: { name: 'jane' },
    spec: {
      priorityLevelConfiguration: { name: 'narrow' },
      matchingPrecedence: 10,
      rules: [
        {
          subjects: [{ kind: 'User', user: { name: 'jane' } }],
          nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/slow'] }],
        },
      ],
    },
  });
  await until(async () => (await danglingOf(plane, 'jane'))?.status === 'False', 'the schema has been applied');
  t.is(await second('jane'), 429);
  t.is(await second('joe'), 200, 'requests of others have other levels');
  await plane.client(FlowSchema).delete('jane');
  await until(async () => (await second('jane')) === 200, 'the schema no longer applies');
});

test('a server that never listens stops without waiting for that', async (t) => {
  const plane = await createControlPlane({ controllers: false });
  t.teardown(() => plane.close());
  const flows = new FlowControlObjects({
    client: () => plane.api,
    clock: new FakeClock(),
    logger: silentLogger,
    after: new Promise(() => {}),
  });
  flows.follow(() => t.fail('nothing has been read'));
  await flows.stop();
  t.pass();
});
