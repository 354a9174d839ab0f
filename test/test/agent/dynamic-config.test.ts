import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigMap, Node } from '@keelson/kinds';
import { eventually, startTestPlane } from '@keelson/testing';
import test from 'ava';
import { AgentMachine } from '../../src/agent-process.ts';

const waitMs = 30_000;

// The process runtime needs it.
const onLinux = process.platform === 'linux' ? test : test.skip;

onLinux(
  '--dynamic-config-dir: an agent exits when its node names a config map, and the next start uses and reports it',
  async (t) => {
    t.timeout(90_000);
    const plane = await startTestPlane();
    t.teardown(() => plane.close());
    const { url } = await plane.listen();
    const text =
      'apiVersion: agentconfig/v1alpha1\nkind: AgentConfiguration\nmaxPods: 7\nnodeStatusUpdateFrequency: 1s\n';
    await plane
      .client(ConfigMap)
      .namespace('kube-system')
      .create({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'agents' }, data: { agent: text } });
    await plane.client(Node).create({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'n1' },
      spec: { configSource: { configMap: { namespace: 'kube-system', name: 'agents', kubeletConfigKey: 'agent' } } },
    } as Node);
    const dir = await mkdtemp(join(tmpdir(), 'keelson-dynamic-'));
    const clusterconfig = join(dir, 'clusterconfig');
    await writeFile(
      clusterconfig,
      JSON.stringify({
        'current-context': 'a',
        contexts: [{ name: 'a', context: { cluster: 'c', user: '' } }],
        clusters: [{ name: 'c', cluster: { server: url } }],
      }),
    );
    const machine = await AgentMachine.create(dir, 'n1', [
      `--clusterconfig=${clusterconfig}`,
      `--dynamic-config-dir=${dir}/dynamic`,
      '--feature-gates=DynamicAgentConfig=true',
    ]);
    t.teardown(() => machine.clear());
    const first = machine.start();
    t.is(await first.exited, 0, first.stderr());
    t.regex(first.stderr(), /the agent ends and uses another configuration/);
    machine.start();
    const { status } = await eventually(async () => {
      const node = await plane.client(Node).get('n1');
      return (
        node.status?.conditions?.some(({ type, reason }) => type === 'ConfigOK' && reason === 'AssignedConfig') && node
      );
    }, waitMs);
    t.is(status?.capacity?.['pods'], '7');
    t.regex(
      status?.conditions?.find(({ type }) => type === 'ConfigOK')?.message ?? '',
      /^using config map kube-system\/agents, key agent .*, on trial$/,
    );
  },
);
