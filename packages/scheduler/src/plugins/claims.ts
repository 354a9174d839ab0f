import { type PersistentVolumeClaim, storageClassOf, volumeReaches, volumesFor } from '@keelson/kinds';
import type { ClaimInfo, ClusterState } from '../cluster/cluster-state.ts';
import type { NodeInfo } from '../cluster/node-info.ts';
import type { CountedPods } from '../cluster/pod-counts.ts';
import type { ClaimUse, PodInfo } from '../cluster/pod-info.ts';
import type { Filter, Rejection } from './plugin.ts';

const inUse: Rejection = {
  reasons: [
    'node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod',
  ],
};

const lostVolume: Rejection = {
  reasons: ['node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)'],
  unresolvable: true,
};
const otherNode: Rejection = { reasons: ["node(s) didn't match PersistentVolume's node affinity"], unresolvable: true };
const noVolume: Rejection = {
  reasons: ["node(s) didn't find available persistent volumes to bind"],
  unresolvable: true,
};

/**
 * A pod waits until its claims are bound to volumes. Claims of a class that waits for the first consumer are bound
 * after the decision, so that the node must reach a free volume, or the class must have a provisioner.
 */
export const volumeBinding: Filter = {
  name: 'VolumeBinding',
  retryAfter: ['ClaimChanged', 'NodeAdded', 'NodeChanged'],
  prepare: (pod, cluster) => {
    const conditions: ((node: NodeInfo) => Rejection | undefined)[] = [];
    let isUnbound = false;
    for (const use of pod.requirements.claims) {
      const reason = unusable(pod, use, cluster);
      if (reason !== undefined) return { rejected: { reasons: [reason], unresolvable: true } };
      const claim = cluster.claims.get(`${pod.namespace}/${use.name}`);
      const condition = claim && conditionOf(claim, cluster);
      if (condition === undefined) isUnbound = true;
      else conditions.push(condition);
    }
    if (isUnbound)
      return { rejected: { reasons: ['pod has unbound immediate PersistentVolumeClaims'], unresolvable: true } };
    if (conditions.length === 0) return undefined;
    return {
      check: (node) => {
        for (const condition of conditions) {
          const rejection = condition(node);
          if (rejection !== undefined) return rejection;
        }
        return undefined;
      },
    };
  },
};

/**
 * Returns the condition that a claim sets for nodes; undefined for a claim that must be bound before a node is chosen.
 */
function conditionOf(
  { phase, volumeName, unbound }: ClaimInfo,
  cluster: ClusterState,
): ((node: NodeInfo) => Rejection | undefined) | undefined {
  if (phase === 'Bound' && volumeName !== '') {
    const volume = cluster.volumes.get(volumeName);
    if (volume === undefined) return () => lostVolume;
    return (node) => (volumeReaches(volume, node) ? undefined : otherNode);
  }
  const storageClass = unbound && cluster.storageClasses.get(storageClassOf(unbound));
  if (storageClass?.volumeBindingMode !== 'WaitForFirstConsumer' || volumeName !== '') return undefined;
  const candidates = volumesFor(unbound as PersistentVolumeClaim, cluster.volumes.values());
  const isProvisioned = storageClass.provisioner !== 'kubernetes.io/no-provisioner';
  const topologies = storageClass.allowedTopologies ?? [];
  const isAllowed = ({ labels }: NodeInfo) =>
    topologies.length === 0 ||
    topologies.some(({ matchLabelExpressions = [] }) =>
      matchLabelExpressions.every(({ key, values }) => values.includes(labels[key] ?? '')),
    );
  return (node) =>
    candidates.some((volume) => volumeReaches(volume, node)) || (isProvisioned && isAllowed(node))
      ? undefined
      : noVolume;
}

function unusable(pod: PodInfo, { name, ephemeral }: ClaimUse, cluster: ClusterState): string | undefined {
  const claim = cluster.claims.get(`${pod.namespace}/${name}`);
  const quoted = `persistentvolumeclaim ${JSON.stringify(name)}`;
  if (claim === undefined)
    return ephemeral ? `waiting for ephemeral volume controller to create the ${quoted}` : `${quoted} not found`;
  if (claim.phase === 'Lost')
    return `${quoted} bound to non-existent persistentvolume ${JSON.stringify(claim.volumeName)}`;
  if (claim.deleting) return `${quoted} is being deleted`;
  if (ephemeral && claim.podUid !== pod.uid)
    return `PVC ${pod.namespace}/${name} was not created for pod ${pod.key} (pod is not owner)`;
  return undefined;
}

/** A claim with the access mode ReadWriteOncePod is used by one pod of the cluster at a time. */
export const volumeRestrictions: Filter = {
  name: 'VolumeRestrictions',
  retryAfter: ['PodDeleted', 'ClaimChanged'],
  prepare: (pod, cluster) => {
    const exclusive = pod.requirements.claims.filter(
      ({ name }) => cluster.claims.get(`${pod.namespace}/${name}`)?.exclusive,
    );
    if (exclusive.length === 0) return undefined;
    const names = new Set(exclusive.map(({ name }) => name));
    const users: CountedPods = {
      key: `claims ${pod.namespace} ${[...names].sort().join(' ')}`,
      matches: ({ namespace, requirements }) =>
        namespace === pod.namespace && requirements.claims.some(({ name }) => names.has(name)),
    };
    let count = 0;
    for (const onNode of cluster.count(users).values()) count += onNode;
    return {
      check: () => (count > 0 ? inUse : undefined),
      added: (other) => {
        if (users.matches(other)) count += 1;
      },
      removed: (other) => {
        if (users.matches(other)) count -= 1;
      },
    };
  },
};
