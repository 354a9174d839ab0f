import type { Node, Pod } from '@keelson/kinds';

/** Pods of 100 workloads, as deployments have them. */
const workloads = 100;
/** A node of three zones. */
export function nodeOf(at: number): Node {
  const name = `node-${at}`;
  const labels = { 'kubernetes.io/hostname': name, 'topology.kubernetes.io/zone': `zone-${at % 3}` };
  return { metadata: { name, labels }, status: { allocatable: { cpu: '32', memory: '256Gi', pods: '110' } } };
}

/** A pod of one of 100 owners. `rules`: with a required topology spread and a preferred anti-affinity. */
export function podOf(at: number, rules: boolean): Pod {
  const app = `app-${at % workloads}`;
  const selector = { matchLabels: { app } };
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: app, uid: app, controller: true };
  const podAntiAffinity = {
    preferredDuringSchedulingIgnoredDuringExecution: [
      { weight: 100, podAffinityTerm: { topologyKey: 'kubernetes.io/hostname', labelSelector: selector } },
    ],
  };
  const topologySpreadConstraints = [
    {
      maxSkew: 1,
      topologyKey: 'topology.kubernetes.io/zone',
      whenUnsatisfiable: 'DoNotSchedule',
      labelSelector: selector,
    },
  ];
  return {
    metadata: { name: `pod-${at}`, namespace: 'default', labels: { app }, ownerReferences: [owner] },
    spec: {
      containers: [{ name: 'main', image: 'app:1', resources: { requests: { cpu: '100m', memory: '100Mi' } } }],
      ...(rules && { affinity: { podAntiAffinity }, topologySpreadConstraints }),
    },
  };
}
