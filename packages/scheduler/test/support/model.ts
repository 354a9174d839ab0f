import { compareQuantities, labelSelectorOf } from '@keelson/core';
import type { coreV1, Node, Pod } from '@keelson/kinds';

/** A cluster as plain objects; assigned pods have `spec.nodeName`. */
export interface ModelCluster {
  readonly nodes: readonly Node[];
  readonly pods: readonly Pod[];
  readonly namespaces: Readonly<Record<string, Record<string, string>>>;
}

const labelsOf = (object: Node | Pod) => object.metadata?.labels ?? {};
const nameOf = (object: Node | Pod) => object.metadata?.name ?? '';

/** Whether a pod may run on a node: every rule is evaluated over all objects, without any state. */
export function fitsByModel(pod: Pod, node: Node, cluster: ModelCluster): boolean {
  const others = cluster.pods.filter((other) => other.spec.nodeName !== undefined);
  const here = others.filter((other) => other.spec.nodeName === nameOf(node));
  return (
    toleratesTaints(pod, node) &&
    matchesNode(pod, node) &&
    portsAreFree(pod, here) &&
    resourcesSuffice(pod, node, here) &&
    isSpread(pod, node, cluster, others) &&
    respectsPods(pod, node, cluster, others)
  );
}

function toleratesTaints(pod: Pod, node: Node): boolean {
  const taints = [...(node.spec?.taints ?? [])];
  if (node.spec?.unschedulable) taints.push({ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' });
  return taints.every(
    ({ key, value = '', effect }) =>
      effect === 'PreferNoSchedule' ||
      (pod.spec.tolerations ?? []).some(
        (one) =>
          (!one.effect || one.effect === effect) &&
          (one.operator === 'Exists' ? !one.key || one.key === key : one.key === key && (one.value ?? '') === value),
      ),
  );
}

function matchesNode(pod: Pod, node: Node): boolean {
  const labels = labelsOf(node);
  const terms =
    pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? undefined;
  const meets = ({ key, operator, values = [] }: coreV1.NodeSelectorRequirement) => {
    const value = labels[key];
    if (operator === 'In') return value !== undefined && values.includes(value);
    if (operator === 'NotIn') return value === undefined || !values.includes(value);
    return operator === 'Exists' ? value !== undefined : value === undefined;
  };
  return (
    Object.entries(pod.spec.nodeSelector ?? {}).every(([key, value]) => labels[key] === value) &&
    (terms?.some(({ matchExpressions = [] }) => matchExpressions.length > 0 && matchExpressions.every(meets)) ?? true)
  );
}

function portsAreFree(pod: Pod, here: readonly Pod[]): boolean {
  const ports = (of: Pod) => of.spec.containers.flatMap(({ ports: list = [] }) => list.filter((port) => port.hostPort));
  const any = (ip: string | undefined) => !ip || ip === '0.0.0.0';
  return ports(pod).every((wanted) =>
    here.every((other) =>
      ports(other).every(
        (used) =>
          used.hostPort !== wanted.hostPort ||
          (used.protocol ?? 'TCP') !== (wanted.protocol ?? 'TCP') ||
          (!any(used.hostIP) && !any(wanted.hostIP) && used.hostIP !== wanted.hostIP),
      ),
    ),
  );
}

function resourcesSuffice(pod: Pod, node: Node, here: readonly Pod[]): boolean {
  const allocatable = node.status?.allocatable ?? {};
  if (here.length + 1 > Number(allocatable['pods'])) return false;
  const cpu = (of: Pod) =>
    of.spec.containers.reduce(
      (sum, { resources }) => sum + Number.parseInt(resources?.requests?.['cpu'] ?? '0m', 10),
      0,
    );
  if (cpu(pod) === 0) return true;
  return compareQuantities(`${[pod, ...here].reduce((sum, of) => sum + cpu(of), 0)}m`, allocatable['cpu'] ?? '0') <= 0;
}

function isSpread(pod: Pod, node: Node, { nodes }: ModelCluster, others: readonly Pod[]): boolean {
  const rules = (pod.spec.topologySpreadConstraints ?? []).filter(
    ({ whenUnsatisfiable }) => whenUnsatisfiable === 'DoNotSchedule',
  );
  return rules.every((rule) => {
    const selector = labelSelectorOf(rule.labelSelector);
    const value = labelsOf(node)[rule.topologyKey];
    if (value === undefined) return false;
    const eligible = nodes.filter(
      (one) =>
        rules.every(({ topologyKey }) => labelsOf(one)[topologyKey] !== undefined) &&
        (rule.nodeAffinityPolicy === 'Ignore' || matchesNode(pod, one)) &&
        (rule.nodeTaintsPolicy !== 'Honor' ||
          toleratesTaints(pod, { ...one, spec: { ...one.spec, unschedulable: false } })),
    );
    const countAt = (place: string) =>
      others.filter(
        (other) =>
          other.metadata?.namespace === pod.metadata?.namespace &&
          selector.matches(labelsOf(other)) &&
          eligible.some((one) => nameOf(one) === other.spec.nodeName && labelsOf(one)[rule.topologyKey] === place),
      ).length;
    const places = [...new Set(eligible.map((one) => labelsOf(one)[rule.topologyKey] as string))];
    const lowest = places.length < (rule.minDomains ?? 1) ? 0 : Math.min(...places.map(countAt));
    return countAt(value) + (selector.matches(labelsOf(pod)) ? 1 : 0) - lowest <= rule.maxSkew;
  });
}

function respectsPods(pod: Pod, node: Node, cluster: ModelCluster, others: readonly Pod[]): boolean {
  const nodeOf = (other: Pod) => cluster.nodes.find((one) => nameOf(one) === other.spec.nodeName);
  const selects = (term: coreV1.PodAffinityTerm, from: Pod, to: Pod) => {
    const namespace = to.metadata?.namespace ?? '';
    const { namespaces = [], namespaceSelector } = term;
    const inNamespace =
      namespaces.includes(namespace) ||
      (namespaceSelector !== undefined && labelSelectorOf(namespaceSelector).matches(cluster.namespaces[namespace])) ||
      (namespaces.length === 0 && namespaceSelector === undefined && namespace === from.metadata?.namespace);
    return inNamespace && labelSelectorOf(term.labelSelector).matches(labelsOf(to));
  };
  const isBeside = (other: Pod, topologyKey: string) => {
    const place = labelsOf(node)[topologyKey];
    const at = nodeOf(other);
    return place !== undefined && at !== undefined && labelsOf(at)[topologyKey] === place;
  };
  const anti = (of: Pod) => of.spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  if (others.some((other) => anti(pod).some((term) => selects(term, pod, other) && isBeside(other, term.topologyKey))))
    return false;
  if (
    others.some((other) => anti(other).some((term) => selects(term, other, pod) && isBeside(other, term.topologyKey)))
  )
    return false;
  const wanted = pod.spec.affinity?.podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  if (wanted.length === 0) return true;
  if (wanted.some(({ topologyKey }) => labelsOf(node)[topologyKey] === undefined)) return false;
  const selectedByAll = (to: Pod) => wanted.every((term) => selects(term, pod, to));
  const friends = others.filter(selectedByAll);
  if (wanted.every(({ topologyKey }) => friends.some((friend) => isBeside(friend, topologyKey)))) return true;
  const anywhere = friends.some((friend) =>
    wanted.some(({ topologyKey }) => {
      const at = nodeOf(friend);
      return at !== undefined && labelsOf(at)[topologyKey] !== undefined;
    }),
  );
  return !anywhere && selectedByAll(pod);
}
