import type { Node, Pod } from '@keelson/kinds';
import test from 'ava';
import { ClusterState } from '../src/cluster/cluster-state.ts';
import { podInfoOf } from '../src/cluster/pod-info.ts';
import { accepted, place } from './support/local-cluster.ts';
import { fitsByModel } from './support/model.ts';
import { RandomCluster, randomOf } from './support/random-cluster.ts';

const clusters = process.env['KEELSON_TEST_FULL'] === '1' ? 3_000 : 150;
const namespaces = { default: { team: 'a' }, other: { team: 'b' } };

test('pods are assigned to exactly the nodes that pass all filters, also after pods and nodes change', (t) => {
  const first = Number(process.env['KEELSON_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
  let assigned = 0;
  let rejected = 0;
  for (let at = 0; at < clusters; at += 1) {
    const seed = first + at;
    const random = randomOf(seed);
    const cases = new RandomCluster(random);
    const cluster = new ClusterState();
    for (const [name, labels] of Object.entries(namespaces)) cluster.setNamespace(name, labels);
    const nodes = new Map<string, Node>();
    const pods = new Map<string, Pod>();
    const setNode = (name: string) => {
      const node = cases.node(name);
      nodes.set(name, node);
      cluster.setNode(name, node);
    };
    for (let n = 0; n < cases.pick(2, 4, 6); n += 1) setNode(`n${n}`);
    for (let step = 0; step < 16; step += 1) {
      if (cases.chance(0.15)) setNode(`n${cases.pick(0, 1, 2)}`);
      const [gone] = pods.keys();
      if (gone !== undefined && cases.chance(0.15)) {
        pods.delete(gone);
        cluster.remove(gone);
      }
      const pod = cases.pod();
      const info = podInfoOf(pod);
      const model = { nodes: [...nodes.values()], pods: [...pods.values()], namespaces };
      const fitting = [...nodes]
        .filter(([, node]) => fitsByModel(pod, node, model))
        .map(([name]) => name)
        .sort();
      t.deepEqual(accepted(info, cluster), fitting, `KEELSON_TEST_SEED=${seed} ${JSON.stringify(pod.spec)}`);
      const chosen = place(info, cluster, random);
      if (fitting.length === 0) {
        t.true(chosen.startsWith('0/'), `KEELSON_TEST_SEED=${seed} ${chosen}`);
        rejected += 1;
        continue;
      }
      t.true(fitting.includes(chosen), `KEELSON_TEST_SEED=${seed} ${chosen}`);
      assigned += 1;
      const placed: Pod = { ...pod, spec: { ...pod.spec, nodeName: chosen } };
      pods.set(info.uid, placed);
      if (cases.chance(0.5)) cluster.assume(info, chosen);
      if (!cluster.isPlaced(info.uid) || cases.chance(0.5)) cluster.observe(podInfoOf(placed));
    }
  }
  t.true(assigned > clusters && rejected > clusters, `both results occur: ${assigned} assigned, ${rejected} rejected`);
});
