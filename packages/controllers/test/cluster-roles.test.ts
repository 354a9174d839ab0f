import { ControllerManager } from '@keelson/controller-kit';
import { noMetrics, silentLogger, systemClock } from '@keelson/core/runtime';
import { ClusterRole } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test from 'ava';
import { clusterRoleAggregation } from '../src/index.ts';
import { startTestPlane } from './support/test-plane.ts';

test('a cluster role collects the rules of the roles that it selects, each once, and follows their changes', async (t) => {
  const plane = await startTestPlane({ controllers: false });
  t.teardown(() => plane.close());
  const roles = plane.client(ClusterRole);
  const rule = (resource: string) => ({ apiGroups: [''], resources: [resource], verbs: ['get'] });
  const create = (name: string, labels: Record<string, string>, ...resources: string[]) =>
    roles.create({ metadata: { name, labels }, rules: resources.map(rule) });
  const resourcesOf = async (name: string) => (await roles.get(name)).rules?.map(({ resources }) => resources?.[0]);
  const collects = (name: string, ...expected: string[]) =>
    until(async () => JSON.stringify(await resourcesOf(name)) === JSON.stringify(expected));

  await create('part-b', { part: 'yes' }, 'pods', 'secrets');
  await create('part-a', { part: 'yes' }, 'nodes', 'pods');
  await create('unselected', { part: 'no' }, 'events');
  await roles.create({
    metadata: { name: 'whole', labels: { part: 'yes' } },
    rules: [rule('own')],
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { part: 'yes' } }] },
  });
  const context = { client: plane.api, clock: systemClock, logger: silentLogger, metrics: noMetrics };
  const controller = new ControllerManager({ ...context, controllers: [clusterRoleAggregation] });
  await controller.start();
  t.teardown(() => controller.stop());

  await collects('whole', 'nodes', 'pods', 'secrets');
  await create('part-c', { part: 'yes' }, 'leases');
  await collects('whole', 'nodes', 'pods', 'secrets', 'leases');
  await roles.patch('part-c', 'merge', { rules: [rule('jobs')] });
  await collects('whole', 'nodes', 'pods', 'secrets', 'jobs');
  await roles.delete('part-b');
  await collects('whole', 'nodes', 'pods', 'jobs');
  await roles.patch('part-c', 'merge', { metadata: { labels: { part: 'no' } } });
  await collects('whole', 'nodes', 'pods');
  t.deepEqual(await resourcesOf('unselected'), ['events']);
});
