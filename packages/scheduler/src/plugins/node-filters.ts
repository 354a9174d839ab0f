import type { NodeInfo } from '../cluster/node-info.ts';
import { hardEffects, matchesNodeRules, tolerates, untoleratedTaint } from '../cluster/node-rules.ts';
import type { Filter, Rejection } from './plugin.ts';

const unschedulable: Rejection = { reasons: ['node(s) were unschedulable'], unresolvable: true };
const otherName: Rejection = { reasons: ["node(s) didn't match the requested node name"], unresolvable: true };
const otherNode: Rejection = {
  reasons: ["node(s) didn't match Pod's node affinity/selector"],
  unresolvable: true,
};
const usedPorts: Rejection = { reasons: ["node(s) didn't have free ports for the requested pod ports"] };

const unschedulableTaint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };

/** Rejects cordoned nodes, unless the pod tolerates their taint. */
export const nodeUnschedulable: Filter = {
  name: 'NodeUnschedulable',
  retryAfter: ['NodeAdded', 'NodeChanged'],
  prepare: (pod) =>
    pod.requirements.tolerations.some((toleration) => tolerates(toleration, unschedulableTaint))
      ? undefined
      : { check: (node) => (node.unschedulable ? unschedulable : undefined) },
};

/** Rejects all nodes but the one that a pod names. */
export const nodeName: Filter = {
  name: 'NodeName',
  retryAfter: ['NodeAdded'],
  prepare: (pod) =>
    pod.nodeName === '' ? undefined : { check: (node) => (node.name === pod.nodeName ? undefined : otherName) },
};

/** Rejects nodes with a taint of effect NoSchedule or NoExecute that the pod does not tolerate. */
export const taintToleration: Filter = {
  name: 'TaintToleration',
  retryAfter: ['NodeAdded', 'NodeChanged'],
  prepare: (pod) => ({
    check: (node) => {
      if (node.taints.length === 0) return undefined;
      const taint = untoleratedTaint(node.taints, pod.requirements.tolerations, hardEffects);
      if (taint === undefined) return undefined;
      return { reasons: [`node(s) had untolerated taint {${taint.key}: ${taint.value ?? ''}}`], unresolvable: true };
    },
  }),
};

/** Rejects nodes that do not match the node selector and the required node affinity. */
export const nodeAffinity: Filter = {
  name: 'NodeAffinity',
  retryAfter: ['NodeAdded', 'NodeChanged'],
  prepare: ({ requirements: { nodeRules } }) => {
    if (nodeRules === undefined) return undefined;
    if (nodeRules.names?.size === 0)
      return { rejected: { reasons: ['pod affinity terms conflict'], unresolvable: true } };
    const { names } = nodeRules;
    const check = (node: NodeInfo) => (matchesNodeRules(nodeRules, node) ? undefined : otherNode);
    return names === undefined ? { check } : { check, onlyNodes: names };
  },
};

/** Rejects nodes on which a requested host port is in use. */
export const nodePorts: Filter = {
  name: 'NodePorts',
  retryAfter: ['NodeAdded', 'PodDeleted'],
  prepare: ({ requirements: { hostPorts } }) => {
    if (hostPorts.length === 0) return undefined;
    return { check: (node) => (hostPorts.every((port) => node.isFree(port)) ? undefined : usedPorts) };
  },
};

/** Rejects nodes without enough unrequested resources, or with as many pods as they allow. */
export const nodeResourcesFit: Filter = {
  name: 'NodeResourcesFit',
  retryAfter: ['NodeAdded', 'NodeChanged', 'PodDeleted', 'PodChanged'],
  prepare: (pod) => {
    const { requests } = pod.requirements;
    const others = Object.entries(requests)
      .filter(([name, amount]) => amount > 0 && name !== 'cpu' && name !== 'memory')
      .sort(([a], [b]) => (a < b ? -1 : 1));
    const { cpu, memory } = requests;
    const fits = ({ allocatable, requested, pods, maxPods }: NodeInfo) =>
      pods.size < maxPods &&
      (cpu === 0 || cpu <= allocatable.cpu - requested.cpu) &&
      (memory === 0 || memory <= allocatable.memory - requested.memory);
    const all = [['cpu', cpu] as const, ['memory', memory] as const, ...others];
    return { check: (node) => (others.length === 0 && fits(node) ? undefined : insufficient(all, node)) };
  },
};

function insufficient(requests: readonly (readonly [string, number])[], node: NodeInfo): Rejection | undefined {
  const reasons = node.pods.size < node.maxPods ? [] : ['Too many pods'];
  let unresolvable = false;
  for (const [resource, amount] of requests) {
    const allocatable = node.allocatable[resource] ?? 0;
    if (amount === 0 || amount <= allocatable - (node.requested[resource] ?? 0)) continue;
    reasons.push(`Insufficient ${resource}`);
    if (amount > allocatable) unresolvable = true;
  }
  return reasons.length === 0 ? undefined : { reasons, unresolvable };
}
