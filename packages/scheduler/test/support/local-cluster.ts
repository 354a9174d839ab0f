import type { Node, Pod } from '@keelson/kinds';
import { ClusterState } from '../../src/cluster/cluster-state.ts';
import { type PodInfo, podInfoOf } from '../../src/cluster/pod-info.ts';
import { fitMessage, PlacementAlgorithm, scoreNodes } from '../../src/placement/placement.ts';
import { findPreemption } from '../../src/placement/preemption.ts';
import { defaultFilters, defaultScores } from '../../src/plugins/default-plugins.ts';
import { type NodeParts, nodeOf, type PodParts, podOf } from './test-cluster.ts';

export interface LocalPod extends PodParts {
  readonly node?: string;
  readonly priority?: number;
  readonly startedAt?: string;
  readonly deleting?: boolean;
  readonly nominatedNodeName?: string;
}

/** The state of a cluster without a server. */
export function localCluster(nodes: Record<string, NodeParts>, pods: Record<string, LocalPod> = {}): ClusterState {
  const cluster = new ClusterState();
  cluster.setNamespace('default', { 'kubernetes.io/metadata.name': 'default' });
  for (const [name, parts] of Object.entries(nodes)) cluster.setNode(name, node(name, parts));
  for (const [name, parts] of Object.entries(pods)) cluster.observe(pod(name, parts));
  return cluster;
}

export function node(name: string, parts: NodeParts = {}): Node {
  return nodeOf(name, parts);
}

/** A pod whose UID is its name. */
export function pod(name: string, parts: LocalPod = {}): PodInfo {
  const object: Pod = podOf(name, parts);
  Object.assign(object.metadata ?? {}, { uid: name });
  if (parts.deleting && object.metadata) object.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
  if (parts.node !== undefined) object.spec.nodeName = parts.node;
  if (parts.priority !== undefined) object.spec.priority = parts.priority;
  object.status = {
    ...(parts.startedAt !== undefined && { startTime: parts.startedAt }),
    ...(parts.nominatedNodeName !== undefined && { nominatedNodeName: parts.nominatedNodeName }),
    ...(parts.deleting && {
      conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler' }],
    }),
  };
  return podInfoOf(object);
}

const algorithm = (random: () => number) =>
  new PlacementAlgorithm({ filters: defaultFilters, scores: defaultScores, percentageOfNodesToScore: 0, random });

/** The name of the chosen node, or the message when the pod does not fit. */
export function place(subject: PodInfo, cluster: ClusterState, random: () => number = () => 0.999): string {
  const placement = algorithm(random).place(subject, cluster);
  return 'node' in placement ? placement.node.name : fitMessage(placement.failure, cluster.nodes.length);
}

/** Names of the nodes that are accepted. */
export function accepted(subject: PodInfo, cluster: ClusterState): string[] {
  const names: string[] = [];
  for (const { name } of cluster.nodes) {
    const only = { name: 'Only', prepare: () => ({ check: () => undefined, onlyNodes: new Set([name]) }) };
    const options = { filters: [...defaultFilters, only], scores: [], percentageOfNodesToScore: 0, random: () => 0 };
    if ('node' in new PlacementAlgorithm(options).place(subject, cluster)) names.push(name);
  }
  return names.sort();
}

/** The normalized score of every node, by one of the built-in scores. */
export function scoresOf(score: string, subject: PodInfo, cluster: ClusterState): Record<string, number> {
  const scores = defaultScores.filter(({ name }) => name === score).map((found) => ({ ...found, weight: 1 }));
  const totals = scoreNodes(scores, subject, cluster, cluster.nodes);
  return Object.fromEntries(cluster.nodes.map(({ name }, at) => [name, totals[at] as number]));
}

/** The node and the victims, or the message. */
export function preemption(subject: PodInfo, cluster: ClusterState): readonly [string, ...string[]] {
  const placement = algorithm(() => 0).place(subject, cluster);
  if ('node' in placement) return [`fits ${placement.node.name}`];
  const found = findPreemption(placement.failure, cluster, () => 0);
  return 'message' in found ? [found.message] : [found.node.name, ...found.victims.map(({ name }) => name)];
}
