import { timeMs } from '@keelson/core';
import type { DaemonSet, Node, Pod } from '@keelson/kinds';
import { hasEnded } from '../workload/pod-state.ts';
import { fitOf, type NodeFit, nodeOf } from './daemon-pods.ts';

/** A node, and the pods of a daemon set on it. */
export interface NodeEntry {
  readonly name: string;
  readonly fit: NodeFit;
  readonly pods: readonly Pod[];
}

const missing: NodeFit = { shouldRun: false, mayStay: false };

/** The pods of a daemon set by node. Pods that have ended and are being deleted are left out. */
export class NodePods {
  /** The nodes that exist. */
  readonly existing: readonly NodeEntry[];
  /** Nodes that do not exist, with the pods that were created for them. */
  readonly gone: readonly NodeEntry[];

  constructor(set: DaemonSet, nodes: readonly Node[], pods: readonly Pod[]) {
    const byNode = new Map<string, Pod[]>();
    for (const pod of pods) {
      const node = nodeOf(pod);
      if (node === undefined || (hasEnded(pod) && pod.metadata?.deletionTimestamp !== undefined)) continue;
      const others = byNode.get(node);
      if (others === undefined) byNode.set(node, [pod]);
      else others.push(pod);
    }
    this.existing = nodes.map((node) => {
      const name = node.metadata?.name ?? '';
      const entry = { name, fit: fitOf(set, node), pods: byNode.get(name) ?? [] };
      byNode.delete(name);
      return entry;
    });
    this.gone = [...byNode].map(([name, others]) => ({ name, fit: missing, pods: others }));
  }
}

/** Sort order: pods that are assigned to a node first, then by age with the oldest first. */
export function byAssignmentAndAge(a: Pod, b: Pod): number {
  const assigned = ({ spec }: Pod) => (spec.nodeName ? 0 : 1);
  const created = ({ metadata }: Pod) => timeMs(metadata?.creationTimestamp ?? '') ?? 0;
  const byName = (a.metadata?.name ?? '') < (b.metadata?.name ?? '') ? -1 : 1;
  return assigned(a) - assigned(b) || created(a) - created(b) || byName;
}
