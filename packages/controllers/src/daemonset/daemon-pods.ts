import { resolveIntOrPercent } from '@keelson/core';
import {
  type coreV1,
  DaemonSet,
  matchesNodeTerm,
  type Node,
  type Pod,
  type PodSpec,
  untoleratedTaint,
} from '@keelson/kinds';
import { podOf } from '../workload/pod-writes.ts';
import { revisionLabel } from '../workload/revisions.ts';

const templateGenerationAnnotation = 'deprecated.daemonset.template.generation';
const templateGenerationLabel = 'pod-template-generation';
const nameField = 'metadata.name';

/** Taints that daemon pods tolerate: they run on nodes that other pods avoid. */
const tolerated: readonly (readonly [key: string, effect: string])[] = [
  ['node.kubernetes.io/not-ready', 'NoExecute'],
  ['node.kubernetes.io/unreachable', 'NoExecute'],
  ['node.kubernetes.io/disk-pressure', 'NoSchedule'],
  ['node.kubernetes.io/memory-pressure', 'NoSchedule'],
  ['node.kubernetes.io/pid-pressure', 'NoSchedule'],
  ['node.kubernetes.io/unschedulable', 'NoSchedule'],
];

/** The tolerations of the template, and those that every daemon pod has. */
function tolerationsOf(spec: Partial<PodSpec>): coreV1.Toleration[] {
  const added = [
    ...tolerated,
    ...(spec.hostNetwork ? [['node.kubernetes.io/network-unavailable', 'NoSchedule'] as const] : []),
  ].map(([key, effect]) => ({ key, operator: 'Exists', effect }));
  const isAdded = ({ key, operator, effect }: coreV1.Toleration) =>
    added.some((other) => other.key === key && other.operator === operator && other.effect === effect);
  return [...(spec.tolerations ?? []).filter((toleration) => !isAdded(toleration)), ...added];
}

/** A pod for a node. The pod is assigned by the scheduler, which a node affinity by name restricts to this node. */
export function daemonPodFor(set: DaemonSet, node: string, hash: string): Pod {
  const pod = podOf(set.spec.template, DaemonSet, set);
  const generation = set.metadata?.annotations?.[templateGenerationAnnotation];
  const { affinity = {}, ...spec } = pod.spec;
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      labels: {
        ...pod.metadata?.labels,
        ...(generation === undefined ? {} : { [templateGenerationLabel]: generation }),
        [revisionLabel]: hash,
      },
    },
    spec: {
      ...spec,
      tolerations: tolerationsOf(spec),
      affinity: {
        ...affinity,
        nodeAffinity: {
          ...affinity.nodeAffinity,
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchFields: [{ key: nameField, operator: 'In', values: [node] }] }],
          },
        },
      },
    },
  };
}

/** The node for which a pod was created; undefined for an adopted pod that may run on any node. */
export function nodeOf({ spec }: Pod): string | undefined {
  if (spec.nodeName) return spec.nodeName;
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  for (const { matchFields = [] } of required?.nodeSelectorTerms ?? []) {
    const field = matchFields.find(({ key, operator }) => key === nameField && operator === 'In');
    if (field?.values?.length === 1) return field.values[0];
  }
  return undefined;
}

/** True when the pod is of the present template. */
export function isUpdated({ metadata }: Pod, set: DaemonSet, hash: string): boolean {
  if (metadata?.labels?.[revisionLabel] === hash) return true;
  const generation = set.metadata?.annotations?.[templateGenerationAnnotation];
  return generation !== undefined && metadata?.labels?.[templateGenerationLabel] === generation;
}

/** Whether a node should run a pod of the set, and whether an existing pod may stay. */
export interface NodeFit {
  readonly shouldRun: boolean;
  readonly mayStay: boolean;
}

/** Compares the selectors and tolerations of the template with a node. A taint without NoExecute lets pods stay. */
export function fitOf(set: DaemonSet, node: Node): NodeFit {
  const spec: Partial<PodSpec> = set.spec.template.spec ?? {};
  const name = node.metadata?.name ?? '';
  const labels = node.metadata?.labels ?? {};
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  const fits =
    (!spec.nodeName || spec.nodeName === name) &&
    Object.entries(spec.nodeSelector ?? {}).every(([key, value]) => labels[key] === value) &&
    (terms === undefined || terms.some((term) => matchesNodeTerm(term, { name, labels })));
  if (!fits) return { shouldRun: false, mayStay: false };
  const taints = node.spec?.taints ?? [];
  const tolerations = tolerationsOf(spec);
  return {
    shouldRun: untoleratedTaint(taints, tolerations, ['NoSchedule', 'NoExecute']) === undefined,
    mayStay: untoleratedTaint(taints, tolerations, ['NoExecute']) === undefined,
  };
}

/** The number of nodes that may run an old and a new pod at the same time. */
export function surgeOf({ spec }: DaemonSet, desired: number): number {
  if (spec.updateStrategy?.type !== 'RollingUpdate') return 0;
  return resolveIntOrPercent(spec.updateStrategy.rollingUpdate?.maxSurge ?? 0, desired, 'up') ?? 0;
}

/** The number of nodes that may be without an available pod. */
export function unavailableOf(set: DaemonSet, desired: number): number {
  const { maxUnavailable = 0 } = set.spec.updateStrategy?.rollingUpdate ?? {};
  const resolved = resolveIntOrPercent(maxUnavailable, desired, 'up') ?? 0;
  return resolved === 0 && surgeOf(set, desired) === 0 ? 1 : resolved;
}
