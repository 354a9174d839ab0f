import { formatMicroTime, formatTime } from '@keelson/core';
import { Event, Lease, Node, Pod } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { nodeLifecycleController } from '../src/node-lifecycle/node-lifecycle-controller.ts';
import { taintEvictionController } from '../src/node-lifecycle/taint-eviction-controller.ts';
import { WorkloadPlane } from './support/workload-plane.ts';

const controllers = [nodeLifecycleController, taintEvictionController];
const types = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'];

class Cluster {
  readonly workloads: WorkloadPlane;
  readonly alive = new Set<string>();

  private constructor(workloads: WorkloadPlane) {
    this.workloads = workloads;
  }

  static async start(t: ExecutionContext, names: readonly string[]): Promise<Cluster> {
    const workloads = await WorkloadPlane.start(t, { controllers });
    const cluster = new Cluster(workloads);
    for (const name of names) await cluster.join(name);
    return cluster;
  }

  get nodes() {
    return this.workloads.plane.client(Node);
  }

  async join(name: string, labels: Record<string, string> = {}): Promise<void> {
    const lastHeartbeatTime = formatTime(new Date(this.workloads.clock.now()));
    const conditions = types.map((type) => ({ type, status: type === 'Ready' ? 'True' : 'False', lastHeartbeatTime }));
    await this.nodes.create({ metadata: { name, labels }, status: { conditions } } as Node);
    await this.nodes.patchSubresource(name, 'status', 'merge', { status: { conditions } });
    this.alive.add(name);
  }

  /** Advances the time in steps of five seconds; living nodes renew their leases in each. */
  async pass(seconds: number): Promise<void> {
    const leases = this.workloads.plane.client(Lease).namespace('kube-node-lease');
    for (let step = 0; step < seconds / 5; step += 1) {
      this.workloads.clock.advance(5_000);
      const renewTime = formatMicroTime(new Date(this.workloads.clock.now()));
      for (const name of this.alive) {
        const known = await leases.get(name).catch(() => undefined);
        if (known === undefined) await leases.create({ metadata: { name }, spec: { renewTime } } as Lease);
        else await leases.update({ ...known, spec: { ...known.spec, renewTime } } as Lease);
      }
      // Controllers observe the renewals before the time advances again.
      for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async passUntil(condition: () => Promise<boolean>, what: string): Promise<void> {
    await until(
      async () => {
        if (await condition()) return true;
        await this.pass(5);
        return condition();
      },
      what,
      60_000,
    );
  }

  async taints(name: string): Promise<string[]> {
    const { spec } = await this.nodes.get(name);
    return (spec?.taints ?? []).map(({ key, effect }) => `${key.replace('node.kubernetes.io/', '')}:${effect}`).sort();
  }

  async condition(name: string, type: string) {
    return (await this.nodes.get(name)).status?.conditions?.find((one) => one.type === type);
  }

  createPod(name: string, nodeName: string, tolerations: object[] = []): Promise<Pod> {
    const spec = { nodeName, tolerations, containers: [{ name: 'c', image: 'i' }] };
    return this.workloads.objects(Pod).create({ metadata: { name }, spec } as Pod);
  }

  async pods(): Promise<string[]> {
    return (await this.workloads.list(Pod)).map(({ metadata }) => metadata?.name ?? '');
  }

  async reasons(): Promise<string[]> {
    const { items } = await this.workloads.plane.client(Event).list();
    return [...new Set(items.map(({ reason = '' }) => reason))].sort();
  }
}

const bears = (key: string, tolerationSeconds?: number) => ({
  key: `node.kubernetes.io/${key}`,
  operator: 'Exists',
  effect: 'NoExecute',
  ...(tolerationSeconds === undefined ? {} : { tolerationSeconds }),
});

test('a node without heartbeats becomes unreachable, its pods leave after their tolerations, and it recovers', async (t) => {
  const cluster = await Cluster.start(t, ['a', 'b', 'c']);
  await cluster.pass(30);
  await cluster.createPod('at-once', 'a');
  await cluster.createPod('patient', 'a', [bears('unreachable', 60)]);
  await cluster.createPod('for-ever', 'a', [bears('unreachable')]);
  await cluster.createPod('elsewhere', 'b');
  for (const name of ['at-once', 'patient', 'for-ever'])
    await cluster.workloads.reaches(Pod, name, ({ status }) => status?.phase === 'Running');

  cluster.alive.delete('a');
  await cluster.pass(30);
  t.deepEqual(await cluster.taints('a'), [], 'within the grace period nothing happens');
  t.is((await cluster.condition('a', 'Ready'))?.status, 'True');
  await cluster.passUntil(async () => (await cluster.condition('a', 'Ready'))?.status === 'Unknown', 'a is Unknown');
  for (const type of types)
    t.like(await cluster.condition('a', type), {
      status: 'Unknown',
      reason: 'NodeStatusUnknown',
      message: 'Kubelet stopped posting node status.',
    });
  await cluster.passUntil(
    async () => (await cluster.taints('a')).join() === 'unreachable:NoExecute,unreachable:NoSchedule',
    'a is tainted',
  );
  await cluster.passUntil(async () => !(await cluster.pods()).includes('at-once'), 'the pod without a toleration left');
  t.true((await cluster.pods()).includes('patient'));
  await cluster.passUntil(async () => !(await cluster.pods()).includes('patient'), 'the patient pod left');
  await cluster.pass(600);
  t.deepEqual((await cluster.pods()).sort(), ['elsewhere', 'for-ever']);
  t.deepEqual(await cluster.taints('b'), []);

  const lastHeartbeatTime = formatTime(new Date(cluster.workloads.clock.now()));
  const conditions = types.map((type) => ({ type, status: type === 'Ready' ? 'True' : 'False', lastHeartbeatTime }));
  await cluster.nodes.patchSubresource('a', 'status', 'strategic', { status: { conditions } });
  cluster.alive.add('a');
  await cluster.passUntil(async () => (await cluster.taints('a')).length === 0, 'the taints are gone');
  await cluster.nodes.delete('c');
  const reasons = ['NodeNotReady', 'RegisteredNode', 'RemovingNode', 'TaintManagerEviction'];
  await until(async () => {
    const found = await cluster.reasons();
    return reasons.every((reason) => found.includes(reason));
  });
});

test('conditions and cordons become taints, others stay, and a returning node cancels planned evictions', async (t) => {
  const cluster = await Cluster.start(t, ['a', 'b']);
  const set = (type: string, status: string) =>
    cluster.nodes.patchSubresource('a', 'status', 'strategic', { status: { conditions: [{ type, status }] } });
  const own = { key: 'own', value: 'x', effect: 'NoExecute' };
  await cluster.nodes.patch('a', 'merge', { spec: { unschedulable: true, taints: [own] } });
  await cluster.createPod('bears-own', 'a', [{ key: 'own', operator: 'Exists' }, bears('not-ready', 300)]);
  for (const type of ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'NetworkUnavailable']) await set(type, 'True');
  const expected = ['disk-pressure', 'memory-pressure', 'network-unavailable', 'pid-pressure', 'unschedulable'];
  const noSchedule = expected.map((key) => `${key}:NoSchedule`);
  await until(async () => (await cluster.taints('a')).join() === [...noSchedule, 'own:NoExecute'].sort().join());
  await set('Ready', 'False');
  await cluster.passUntil(async () => (await cluster.taints('a')).includes('not-ready:NoExecute'), 'a is drained');
  await set('Ready', 'True');
  for (const type of ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'NetworkUnavailable']) await set(type, 'False');
  await cluster.nodes.patch('a', 'merge', { spec: { unschedulable: null } });
  await until(async () => (await cluster.taints('a')).join() === 'own:NoExecute');
  await until(async () => {
    const { items } = await cluster.workloads.plane.client(Event).list();
    return items.some(({ message }) => message === 'Cancelling deletion of Pod default/bears-own');
  });
  await cluster.pass(600);
  t.deepEqual(await cluster.pods(), ['bears-own']);
});

test('when all nodes fail at once nothing is evicted; when some remain, they are drained one after the other', async (t) => {
  const names = Array.from({ length: 6 }, (_, index) => `n${index}`);
  const cluster = await Cluster.start(t, names);
  await cluster.pass(10);
  for (const name of names) await cluster.createPod(`on-${name}`, name);
  for (const name of names)
    await cluster.workloads.reaches(Pod, `on-${name}`, ({ status }) => status?.phase === 'Running');
  cluster.alive.clear();
  const unreachable = async () => {
    const states = await Promise.all(names.map((name) => cluster.condition(name, 'Ready')));
    return states.filter((condition) => condition?.status === 'Unknown').length;
  };
  await cluster.passUntil(async () => (await unreachable()) === 6, 'all nodes are unreachable');
  await cluster.pass(120);
  t.is((await cluster.pods()).length, 6, 'nothing is evicted');

  // Four of six return: less than 55 % of the zone has failed.
  const lastHeartbeatTime = formatTime(new Date(cluster.workloads.clock.now()));
  const conditions = [{ type: 'Ready', status: 'True', lastHeartbeatTime }];
  for (const name of names.slice(0, 4)) {
    cluster.alive.add(name);
    await cluster.nodes.patchSubresource(name, 'status', 'strategic', { status: { conditions } });
  }
  await cluster.passUntil(async () => (await cluster.pods()).length < 6, 'the first node is drained');
  await cluster.passUntil(async () => (await cluster.pods()).length === 4, 'the second node is drained');
  const times = await Promise.all(
    names.slice(4).map(async (name) => {
      const { spec } = await cluster.nodes.get(name);
      return Date.parse(spec?.taints?.find(({ effect }) => effect === 'NoExecute')?.timeAdded ?? '');
    }),
  );
  t.true(Math.abs((times[0] ?? 0) - (times[1] ?? 0)) >= 10_000, `one node in ten seconds: ${times.join()}`);
});

test('in a zone of which most nodes failed nothing is evicted while another zone is healthy', async (t) => {
  const cluster = await Cluster.start(t, []);
  const zone = (name: string) => ({ 'topology.kubernetes.io/zone': name });
  for (const name of ['a1', 'a2', 'a3', 'a4']) await cluster.join(name, zone('a'));
  await cluster.join('b1', zone('b'));
  await cluster.pass(10);
  for (const name of ['a1', 'a2', 'a3']) cluster.alive.delete(name);
  await cluster.passUntil(
    async () =>
      (await Promise.all(['a1', 'a2', 'a3'].map((n) => cluster.condition(n, 'Ready')))).every(
        (c) => c?.status === 'Unknown',
      ),
    'three nodes are unreachable',
  );
  await cluster.pass(60);
  const evicting = await Promise.all(['a1', 'a2', 'a3'].map((name) => cluster.taints(name)));
  t.true(evicting.flat().includes('unreachable:NoSchedule'));
  t.false(evicting.flat().includes('unreachable:NoExecute'));
});

test('a node that never reports is unreachable after a minute', async (t) => {
  const cluster = await Cluster.start(t, ['a']);
  await cluster.nodes.create({ metadata: { name: 'silent' } });
  await cluster.pass(45);
  t.is(await cluster.condition('silent', 'Ready'), undefined);
  await cluster.passUntil(async () => (await cluster.condition('silent', 'Ready')) !== undefined, 'it has conditions');
  t.like(await cluster.condition('silent', 'Ready'), {
    status: 'Unknown',
    reason: 'NodeStatusNeverUpdated',
    message: 'Kubelet never posted node status.',
  });
});
