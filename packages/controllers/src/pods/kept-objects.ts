import type { Node, Pod } from '@keelson/kinds';

/** The cached part of a pod. */
export interface KeptPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** '' as long as the pod is bound to no node. */
  readonly nodeName: string;
  readonly phase: string;
  readonly evicted: boolean;
  readonly deleting: boolean;
  /** Epoch milliseconds. */
  readonly createdAt: number;
}

/** The cached part of a node. */
export interface KeptNode {
  readonly name: string;
  readonly ready: boolean;
  readonly outOfService: boolean;
}

export function keepPod({ metadata = {}, spec, status }: Pod): KeptPod {
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name ?? '',
    uid: metadata.uid ?? '',
    nodeName: spec.nodeName ?? '',
    phase: status?.phase ?? '',
    evicted: status?.phase === 'Failed' && status.reason === 'Evicted',
    deleting: metadata.deletionTimestamp !== undefined,
    createdAt: Date.parse(metadata.creationTimestamp ?? ''),
  };
}

export function keepNode({ metadata = {}, spec, status }: Node): KeptNode {
  return {
    name: metadata.name ?? '',
    ready: status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') ?? false,
    outOfService: spec?.taints?.some(({ key }) => key === 'node.kubernetes.io/out-of-service') ?? false,
  };
}

export const isTerminated = ({ phase }: KeptPod): boolean => phase === 'Succeeded' || phase === 'Failed';

/** The order in which pods that have ended are deleted: evicted ones first, then by age, then by name. */
export function oldestFirst(a: KeptPod, b: KeptPod): number {
  if (a.evicted !== b.evicted) return a.evicted ? -1 : 1;
  return a.createdAt - b.createdAt || (a.name < b.name ? -1 : 1);
}
