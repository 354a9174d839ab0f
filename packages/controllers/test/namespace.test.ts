import { ControllerManager } from '@keelson/controller-kit';
import { type ApiClient, isStatusError, type KindDefinition, type KubeObject, StatusReason } from '@keelson/core';
import { noMetrics, silentLogger, systemClock } from '@keelson/core/runtime';
import { APIService, ConfigMap, Namespace, Secret, ServiceAccount } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import anyTest, { type TestFn } from 'ava';
import { namespaceDefaults } from '../src/index.ts';
import { startTestPlane, type TestPlane } from './support/test-plane.ts';

const test = anyTest as TestFn<{ plane: TestPlane }>;

let plane: TestPlane;

test.before(async () => {
  plane = await startTestPlane();
});

test.beforeEach((t) => {
  t.context.plane = plane;
});

test.after.always(() => plane.close());

const namespaceGone = (plane: TestPlane, name: string) => async () => {
  try {
    await plane.client(Namespace).get(name);
    return false;
  } catch (error) {
    return isStatusError(error, StatusReason.NotFound);
  }
};

test('deleting a namespace removes hundreds of objects of several kinds and no object of another namespace', async (t) => {
  const { plane } = t.context;
  await plane.client(Namespace).create({ metadata: { name: 'full' } });
  await plane.client(Namespace).create({ metadata: { name: 'full-not' } });
  const [maps, secrets] = [plane.client(ConfigMap), plane.client(Secret)];
  await Promise.all(
    Array.from({ length: 300 }, async (_, i) => {
      await maps.namespace('full').create({ metadata: { name: `m-${i}` } });
      await secrets.namespace('full').create({ metadata: { name: `s-${i}` } });
    }),
  );
  await maps.namespace('full-not').create({ metadata: { name: 'neighbour' } });
  await plane.client(Namespace).delete('full');
  await until(namespaceGone(plane, 'full'));
  t.is((await maps.namespace('full').list()).items.length, 0);
  t.is((await secrets.namespace('full').list()).items.length, 0);
  t.is((await maps.namespace('full-not').list()).items.length, 1);
});

test('a namespace in deletion reports the remaining finalizers in its conditions, and is removed after them', async (t) => {
  const { plane } = t.context;
  await plane.client(Namespace).create({ metadata: { name: 'held' } });
  const maps = plane.client(ConfigMap).namespace('held');
  await maps.create({ metadata: { name: 'stubborn', finalizers: ['example.com/hold'] } });
  await plane.client(Namespace).delete('held');
  const condition = await until(async () => {
    const { status } = await plane.client(Namespace).get('held');
    return status?.conditions?.find(
      (entry) => entry.type === 'NamespaceFinalizersRemaining' && entry.status === 'True',
    );
  });
  t.regex(condition.message ?? '', /example\.com\/hold in 1 resource instances/);
  await maps.patch('stubborn', 'merge', { metadata: { finalizers: null } });
  await until(namespaceGone(plane, 'held'));
});

test('finalizers of other parties on the namespace itself are waited for', async (t) => {
  const { plane } = t.context;
  const namespaces = plane.client(Namespace);
  await namespaces.create({ metadata: { name: 'shared', finalizers: ['example.com/audit'] } });
  await namespaces.delete('shared');
  await until(async () => ((await namespaces.get('shared')).spec?.finalizers ?? []).length === 0);
  await namespaces.patch('shared', 'merge', { metadata: { finalizers: null } });
  await until(namespaceGone(plane, 'shared'));
  t.pass();
});

test('a namespace in deletion waits for API versions whose resources are unknown', async (t) => {
  const own = await startTestPlane();
  t.teardown(() => own.close());
  const services = own.client(APIService);
  const service = { namespace: 'default', name: 'missing' };
  const spec = { group: 'nope.io', version: 'v1', service, groupPriorityMinimum: 100, versionPriority: 10 };
  await services.create({ metadata: { name: 'v1.nope.io' }, spec } as APIService);
  await own.client(Namespace).create({ metadata: { name: 'unknown' } });
  await own.client(Namespace).delete('unknown');
  const condition = await until(async () => {
    const { status } = await own.client(Namespace).get('unknown');
    return status?.conditions?.find(({ type }) => type === 'NamespaceDeletionDiscoveryFailure');
  });
  t.like(condition, {
    status: 'True',
    reason: 'DiscoveryFailed',
    message:
      'Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: ' +
      'nope.io/v1: stale GroupVersion discovery: nope.io/v1',
  });
  await services.delete('v1.nope.io');
  await until(namespaceGone(own, 'unknown'));
});

test('a name can be used again after its namespace is gone, and starts empty', async (t) => {
  const { plane } = t.context;
  const namespaces = plane.client(Namespace);
  const first = await namespaces.create({ metadata: { name: 'again' } });
  await plane
    .client(ConfigMap)
    .namespace('again')
    .create({ metadata: { name: 'old' } });
  await namespaces.delete('again');
  await until(namespaceGone(plane, 'again'));
  const second = await namespaces.create({ metadata: { name: 'again' } });
  t.not(second.metadata?.uid, first.metadata?.uid);
  t.deepEqual((await plane.client(ConfigMap).namespace('again').list()).items as KubeObject[], []);
});

test('a namespace is written only when its conditions change, and not after its finalizer was removed', async (t) => {
  const calls: string[] = [];
  const wrapClient = (client: ApiClient): ApiClient => {
    const namespaces = client.resource(Namespace);
    const counted = Object.assign(Object.create(namespaces) as typeof namespaces, {
      get: namespaces.get.bind(namespaces),
      list: namespaces.list.bind(namespaces),
      watch: namespaces.watch.bind(namespaces),
      updateSubresource: (...call: Parameters<typeof namespaces.updateSubresource>) => {
        calls.push(call[1]);
        return namespaces.updateSubresource(...call);
      },
      patchSubresource: (...call: Parameters<typeof namespaces.patchSubresource>) => {
        calls.push(call[1]);
        return namespaces.patchSubresource(...call);
      },
    });
    return Object.assign(Object.create(client) as ApiClient, {
      resource: (kind: KindDefinition) => (kind.kind === 'Namespace' ? counted : client.resource(kind)),
      dynamic: client.dynamic.bind(client),
      discover: client.discover.bind(client),
    });
  };
  const own = await startTestPlane({ fakeClock: true, wrapClient });
  t.teardown(() => own.close());
  const namespaces = own.client(Namespace);
  await namespaces.create({ metadata: { name: 'quiet', finalizers: ['example.com/audit'] } });
  const maps = own.client(ConfigMap).namespace('quiet');
  await maps.create({ metadata: { name: 'stubborn', finalizers: ['example.com/hold'] } });
  await namespaces.delete('quiet');
  await until(async () => (await namespaces.get('quiet')).status?.conditions !== undefined);
  // The rechecks after 50, 100 and 200 ms of the plane's time find the same conditions.
  for (let recheck = 0; recheck < 50; recheck += 1) {
    own.clock?.advance(100);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await maps.patch('stubborn', 'merge', { metadata: { finalizers: null } });
  await until(async () => {
    own.clock?.advance(5_000);
    return ((await namespaces.get('quiet')).spec?.finalizers ?? []).length === 0;
  });
  await namespaces.patch('quiet', 'merge', { metadata: { labels: { a: 'b' } } });
  await namespaces.create({ metadata: { name: 'last' } });
  await namespaces.delete('last');
  await until(namespaceGone(own, 'last'));
  t.deepEqual(calls, ['status', 'finalize', 'finalize']);
});

test('every namespace has a default service account and the authorities of the server, also after changes', async (t) => {
  const plane = await startTestPlane({ controllers: false });
  t.teardown(() => plane.close());
  const defaults = new ControllerManager({
    client: plane.api,
    clock: systemClock,
    logger: silentLogger,
    metrics: noMetrics,
    controllers: [namespaceDefaults(() => 'PEM')],
  });
  await defaults.start();
  t.teardown(() => defaults.stop());
  await plane.client(Namespace).create({ metadata: { name: 'new' } });
  const accounts = plane.client(ServiceAccount).namespace('new');
  const maps = plane.client(ConfigMap).namespace('new');
  const complete = () =>
    until(async () => {
      const [account] = (await accounts.list({ fieldSelector: 'metadata.name=default' })).items;
      const [map] = (await maps.list({ fieldSelector: 'metadata.name=kube-root-ca.crt' })).items;
      return account !== undefined && JSON.stringify(map?.data) === '{"ca.crt":"PEM"}';
    });
  await complete();
  await accounts.delete('default');
  await complete();
  await maps.delete('kube-root-ca.crt');
  await complete();
  await maps.patch('kube-root-ca.crt', 'merge', { data: { 'ca.crt': 'other' } });
  await complete();
  await maps.patch('kube-root-ca.crt', 'merge', { data: { more: 'data' } });
  await complete();
  t.pass();
});
