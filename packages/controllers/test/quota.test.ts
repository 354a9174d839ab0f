import type { ApiClient } from '@keelson/core';
import { ConfigMap, Pod, ResourceQuota, Secret, Service } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test from 'ava';
import { resourceQuotaController } from '../src/index.ts';
import { interceptedClient } from './support/intercepted-client.ts';
import { WorkloadPlane } from './support/workload-plane.ts';

const pod = (name: string, cpu: string, more: Partial<Pod['spec']> = {}): Pod => ({
  metadata: { name },
  spec: { containers: [{ name: 'c', image: 'i', resources: { requests: { cpu } } }], ...more },
});

test('the status of quotas has the limits of the spec and the present use of them, in the scopes of the quota', async (t) => {
  const lists: string[] = [];
  const wrapClient = (client: ApiClient): ApiClient => ({
    ...interceptedClient(client, {}),
    dynamic: (resource, options) => {
      lists.push(resource.resource);
      return client.dynamic(resource, options);
    },
  });
  const workloads = await WorkloadPlane.start(t, { controllers: [resourceQuotaController()], wrapClient });
  const { plane } = workloads;
  const quotas = workloads.objects(ResourceQuota);
  const create = (name: string, hard: Record<string, string>, spec: Partial<ResourceQuota['spec']> = {}) =>
    quotas.create({ metadata: { name }, spec: { hard, ...spec } });
  const uses = (name: string, used: Record<string, string>) =>
    workloads.reaches(
      ResourceQuota,
      name,
      ({ status }) => {
        const entries = (amounts: object = {}) => JSON.stringify(Object.entries(amounts).sort());
        return entries(status?.used) === entries(used);
      },
      { advanceMs: 200, what: `${name} uses ${JSON.stringify(used)}` },
    );
  await plane
    .client(Secret)
    .namespace('kube-node-lease')
    .create({ metadata: { name: 'elsewhere' } });
  await workloads.objects(Pod).create(pod('a', '1'));
  await workloads.objects(Pod).create(pod('b', '500m', { activeDeadlineSeconds: 60 }));
  await workloads.objects(Service).create({ metadata: { name: 's' }, spec: { ports: [{ port: 80 }] } });
  for (const name of ['m1', 'm2', 'm3']) await workloads.objects(ConfigMap).create({ metadata: { name } });
  await create('all', { 'requests.cpu': '4', pods: '9', services: '2', configmaps: '5', 'count/secrets': '3' });
  await create('bounded', { pods: '9', 'requests.cpu': '1', 'count/configmaps': '1' }, { scopes: ['Terminating'] });
  await create('unknown', { 'count/widgets.example.com': '1', 'example.com/thing': '1', 'count/pods': '3' });

  const first = await uses('all', {
    ...{ 'requests.cpu': '1500m', pods: '2', services: '1', configmaps: '3', 'count/secrets': '0' },
  });
  t.deepEqual(first.status?.hard, first.spec.hard);
  await uses('bounded', { pods: '1', 'requests.cpu': '500m', 'count/configmaps': '0' });
  await uses('unknown', { 'count/pods': '2' });
  t.false(lists.includes('pods'), 'pods are counted from the local copies');

  // The use is raised by a watched object at once, and by others with the next count.
  await workloads.objects(Pod).create(pod('c', '1'));
  await until(async () => (await quotas.get('all')).status?.used?.['pods'] === '3');
  await workloads.objects(Secret).create({ metadata: { name: 'one' } });
  await uses('all', {
    ...{ 'requests.cpu': '2500m', pods: '3', services: '1', configmaps: '3', 'count/secrets': '1' },
  });
  await quotas.patch('all', 'merge', { spec: { hard: { services: null, pods: '10' } } });
  const changed = await uses('all', { 'requests.cpu': '2500m', pods: '3', configmaps: '3', 'count/secrets': '1' });
  await until(async () => (await quotas.get('all')).status?.hard?.['pods'] === '10');
  t.is(changed.status?.hard?.['services'], undefined);
});

test('a kind that cannot be listed keeps its known use, and the rest of the quota is updated', async (t) => {
  let fails = false;
  const workloads = await WorkloadPlane.start(t, {
    controllers: [resourceQuotaController()],
    wrapClient: (client) => ({
      ...interceptedClient(client, {}),
      dynamic: (resource, options) => {
        if (fails && resource.resource === 'secrets') throw new Error('no answer');
        return client.dynamic(resource, options);
      },
    }),
  });
  const quotas = workloads.objects(ResourceQuota);
  const uses = async (used: Record<string, string>) => {
    workloads.clock.advance(1_000);
    const found = (await quotas.get('q')).status?.used ?? {};
    return Object.entries(used).every(([name, amount]) => found[name] === amount);
  };
  await workloads.objects(Secret).create({ metadata: { name: 'one' } });
  await quotas.create({ metadata: { name: 'q' }, spec: { hard: { secrets: '3', configmaps: '3', pods: '3' } } });
  await until(() => uses({ secrets: '1', configmaps: '0', pods: '0' }));
  fails = true;
  await workloads.objects(ConfigMap).create({ metadata: { name: 'one' } });
  await workloads.objects(Pod).create(pod('a', '1'));
  await until(() => uses({ secrets: '1', configmaps: '1', pods: '1' }));
  await workloads.objects(Secret).create({ metadata: { name: 'two' } });
  fails = false;
  await until(() => uses({ secrets: '2', configmaps: '1', pods: '1' }));
  t.pass();
});

test('the use of a quota is lowered only after it has not been charged for a second', async (t) => {
  let discoveries = 0;
  const workloads = await WorkloadPlane.start(t, {
    controllers: [resourceQuotaController()],
    wrapClient: (client) => ({
      ...interceptedClient(client, {}),
      discover: () => {
        discoveries += 1;
        return client.discover();
      },
    }),
  });
  const quotas = workloads.objects(ResourceQuota);
  const used = async (name: string) => (await quotas.get(name)).status?.used ?? {};
  await quotas.create({ metadata: { name: 'q' }, spec: { hard: { pods: '9', services: '9' } } });
  await until(async () => (await used('q'))['pods'] === '0');
  // A server has charged a pod that is not stored yet.
  await quotas.patchSubresource('q', 'status', 'merge', { status: { used: { pods: '1' } } });
  for (const count of ['1', '2']) {
    await workloads.objects(Service).create({ metadata: { name: `s-${count}` }, spec: { ports: [{ port: 80 }] } });
    await until(async () => (await used('q'))['services'] === count);
    t.is((await used('q'))['pods'], '1');
    workloads.clock.advance(999);
  }
  await workloads.reaches(ResourceQuota, 'q', ({ status }) => status?.used?.['pods'] === '0', { advanceMs: 100 });
  t.is(discoveries, 0, 'kinds are looked up only to count objects that are not watched');
});
