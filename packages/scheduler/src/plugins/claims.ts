import type { ClusterState } from '../cluster/cluster-state.ts';
import type { CountedPods } from '../cluster/pod-counts.ts';
import type { ClaimUse, PodInfo } from '../cluster/pod-info.ts';
import type { Filter, Rejection } from './plugin.ts';

const inUse: Rejection = {
  reasons: [
    'node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod',
  ],
};

/** A pod waits until all claims that it mounts are bound to volumes. */
export const volumeBinding: Filter = {
  name: 'VolumeBinding',
  retryAfter: ['ClaimChanged'],
  prepare: (pod, cluster) => {
    let isUnbound = false;
    for (const use of pod.requirements.claims) {
      const reason = unusable(pod, use, cluster);
      if (reason !== undefined) return { rejected: { reasons: [reason], unresolvable: true } };
      const claim = cluster.claims.get(`${pod.namespace}/${use.name}`);
      if (claim?.phase !== 'Bound' || claim.volumeName === '') isUnbound = true;
    }
    if (!isUnbound) return undefined;
    return { rejected: { reasons: ['pod has unbound immediate PersistentVolumeClaims'], unresolvable: true } };
  },
};

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
