import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type HostActions,
  parseOptions,
  type RunAgentOptions,
  resolveConfig,
  runAgent,
  UsageError,
} from '@keelson/agent';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import { Event, Node } from '@keelson/kinds';
import { createFakeRuntime, FakeWorld } from '@keelson/runtime-fake';
import { eventually, startTestPlane, type TestPlane } from '@keelson/testing';
import test, { type ExecutionContext } from 'ava';
import { scratchDirectory } from '../../src/agent-node.ts';

let plane: TestPlane;
let url: string;
let nodes = 0;

test.before(async () => {
  plane = await startTestPlane();
  ({ url } = await plane.listen());
});

test.after.always(() => plane.close());

const clusterconfig = () =>
  JSON.stringify({
    'current-context': 'a',
    contexts: [{ name: 'a', context: { cluster: 'c', user: '' } }],
    clusters: [{ name: 'c', cluster: { server: url } }],
  });

/** An agent as the command runs it, on a fake runtime; `ranges` are the pod ranges that the runtime received. */
async function started(t: ExecutionContext, words: readonly string[], more: Partial<RunAgentOptions> = {}) {
  nodes += 1;
  const name = `options-${nodes}`;
  const { dir, remove } = await scratchDirectory();
  t.teardown(remove);
  await mkdir(join(dir, 'root'));
  await writeFile(join(dir, 'clusterconfig'), clusterconfig());
  const ranges: (string | undefined)[] = [];
  const engine = createFakeRuntime(new FakeWorld());
  const runtime = new Proxy(engine.runtime, {
    get(target, key) {
      if (key === 'updateConfig') return async ({ podCidr }: { podCidr?: string }) => void ranges.push(podCidr);
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const quiet = [
    '--enable-server=false',
    '--read-only-port=0',
    '--healthz-port=0',
    '--stats-port=0',
    '--resolv-conf=',
    // The load of this machine has no effect.
    '--eviction-hard=',
    '--node-status-update-frequency=300ms',
  ];
  const { config } = resolveConfig(
    parseOptions([
      `--hostname-override=${name}`,
      `--root-dir=${dir}/root`,
      ...quiet,
      ...words.map((word) => word.replace('DIR', dir)),
    ]),
    { hostname: () => name, fileExists: () => false },
  );
  await writeFile(
    join(dir, 'machine.yaml'),
    'providerID: lab://7\nzone: z1\naddresses: [{type: ExternalIP, address: 203.0.113.7}]\n',
  );
  const agent = await runAgent({
    config,
    effective: {},
    engine: { ...engine, runtime },
    logRoot: join(dir, 'log'),
    clock: systemClock,
    logger: silentLogger,
    ...more,
  });
  t.teardown(() => agent.stop());
  return { name, ranges };
}

const inCluster = '--clusterconfig=DIR/clusterconfig';
const nodeOf = (name: string) =>
  plane
    .client(Node)
    .get(name)
    .catch(() => undefined);

test('--cloud-provider=file with --cloud-config: the node has the values of the file', async (t) => {
  const { name } = await started(t, [inCluster, '--cloud-provider=file', '--cloud-config=DIR/machine.yaml']);
  const node = await eventually(() => nodeOf(name));
  t.is(node.spec?.providerID, 'lab://7');
  t.is(node.metadata?.labels?.['topology.kubernetes.io/zone'], 'z1');
  t.deepEqual(node.status?.addresses, [{ type: 'ExternalIP', address: '203.0.113.7' }]);
  await t.throwsAsync(started(t, [inCluster, '--cloud-provider=nowhere']), { instanceOf: UsageError });
});

test('--cloud-provider=external: node addresses that another client writes are kept', async (t) => {
  const { name } = await started(t, [inCluster, '--cloud-provider=external']);
  const node = await eventually(() => nodeOf(name));
  t.deepEqual(node.spec?.taints, [
    { key: 'node.cloudprovider.kubernetes.io/uninitialized', value: 'true', effect: 'NoSchedule' },
  ]);
  const addresses = [{ type: 'ExternalIP', address: '203.0.113.9' }];
  const patch = { status: { addresses: [...addresses, { $patch: 'replace' }] } };
  await plane.client(Node).patchSubresource(name, 'status', 'strategic', patch);
  const beat = (one: Node | undefined) =>
    one?.status?.conditions?.find(({ type }) => type === 'Ready')?.lastHeartbeatTime;
  const given = await nodeOf(name);
  const later = await eventually(async () => {
    const now = await nodeOf(name);
    return now !== undefined && beat(now) !== beat(given) ? now : undefined;
  });
  t.deepEqual(later.status?.addresses, addresses);
});

test('the runtime receives the pod CIDR: --pod-cidr alone, spec.podCIDR of the node with an API server', async (t) => {
  const alone = await started(t, ['--pod-cidr=10.1.0.0/24']);
  t.deepEqual(alone.ranges, ['10.1.0.0/24']);
  const { name, ranges } = await started(t, [inCluster, '--pod-cidr=10.1.0.0/24']);
  await eventually(() => nodeOf(name));
  await plane.client(Node).patch(name, 'merge', { spec: { podCIDR: '10.2.7.0/24' } });
  await eventually(async () => (ranges.length > 0 ? true : undefined));
  t.deepEqual(ranges, ['10.2.7.0/24']);
});

test('--make-iptables-util-chains: missing iptables is an event of the node, and false runs no program', async (t) => {
  const executed: string[] = [];
  const hostActions: HostActions = {
    async run(program) {
      executed.push(program);
      throw Object.assign(new Error('no such program'), { code: 'ENOENT' });
    },
  };
  const { name } = await started(t, [inCluster], { hostActions });
  const event = await eventually(async () =>
    (await plane.client(Event).namespace('default').list()).items.find(
      ({ involvedObject, reason }) => involvedObject.name === name && reason === 'UtilityChainsNotKept',
    ),
  );
  t.is(event.message, 'Utility chains of iptables could not be reconciled: iptables is not installed on this machine');
  t.true(executed.length > 0);
  executed.length = 0;
  const off = await started(t, [inCluster, '--make-iptables-util-chains=false'], { hostActions });
  await eventually(() => nodeOf(off.name));
  t.deepEqual(executed, []);
});
