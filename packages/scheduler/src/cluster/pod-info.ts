import { keyOf } from '@keelson/client';
import { controllerOf } from '@keelson/controller-kit';
import type { coreV1, Pod } from '@keelson/kinds';
import { type NodeRules, nodeRulesOf } from './node-rules.ts';
import { type PodTerm, podTermOf, type SpreadRule, spreadRuleOf } from './pod-terms.ts';
import { podRequests, type Resources } from './resources.ts';

/** A port of the node that a pod uses. */
export interface HostPort {
  readonly ip: string;
  readonly protocol: string;
  readonly port: number;
}

/** A claim that a pod mounts. */
export interface ClaimUse {
  readonly name: string;
  /** True for a generic ephemeral volume: the claim is created for this pod from a template in its spec. */
  readonly ephemeral: boolean;
}

/** The requirements that follow from the spec of a pod. Pods with equal specs share one object. */
export interface PodRequirements {
  readonly requests: Readonly<Resources>;
  /** `requests`, with an assumed amount for containers that request no cpu or memory. For scores. */
  readonly scoredRequests: Readonly<Resources>;
  readonly hostPorts: readonly HostPort[];
  readonly nodeRules: NodeRules | undefined;
  readonly preferredNodes: readonly coreV1.PreferredSchedulingTerm[];
  readonly tolerations: readonly coreV1.Toleration[];
  readonly affinity: readonly PodTerm[];
  readonly antiAffinity: readonly PodTerm[];
  /** Preferences for and against other pods. */
  readonly preferredPods: readonly PodTerm[];
  readonly spread: readonly SpreadRule[];
  /** Images of all containers, with a tag. */
  readonly images: readonly string[];
  readonly claims: readonly ClaimUse[];
  readonly preempts: boolean;
}

/** The part of a pod that scheduling needs. */
export interface PodInfo {
  /** `namespace/name`. */
  readonly key: string;
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly schedulerName: string;
  /** True for a pod that has ended, so that it uses nothing of its node any more. */
  readonly terminal: boolean;
  /** True while the pod has scheduling gates, so that it is not to be scheduled yet. */
  readonly gated: boolean;
  /** Name of the node of the pod; empty: the pod is not assigned. */
  readonly nodeName: string;
  readonly nominatedNodeName: string;
  readonly priority: number;
  /** Epoch milliseconds at which the pod started; `Infinity` before the start. */
  readonly startedMs: number;
  readonly deleting: boolean;
  /** True while the pod is being deleted in favour of a pod of higher priority. */
  readonly preempted: boolean;
  /** UID of the ReplicaSet, StatefulSet or ReplicationController that controls it. */
  readonly owner: string | undefined;
  readonly requirements: PodRequirements;
  /** The whole pod; only while it waits for a node. */
  readonly object: Pod | undefined;
}

/** Requirements by the parts of specs they follow from. Emptied when full, so that memory is bounded. */
const known = new Map<string, PodRequirements>();
const maxKnown = 4096;

const spreadOwners = ['ReplicaSet', 'StatefulSet', 'ReplicationController'];

export function podInfoOf(pod: Pod): PodInfo {
  const { metadata = {}, spec, status } = pod;
  const nodeName = spec.nodeName ?? '';
  const disruption = status?.conditions?.find(({ type }) => type === 'DisruptionTarget');
  const owner = controllerOf(pod);
  return {
    key: keyOf(pod),
    uid: metadata.uid ?? '',
    namespace: metadata.namespace ?? '',
    name: metadata.name ?? '',
    labels: metadata.labels ?? {},
    schedulerName: spec.schedulerName ?? '',
    terminal: status?.phase === 'Succeeded' || status?.phase === 'Failed',
    gated: (spec.schedulingGates?.length ?? 0) > 0,
    nodeName,
    nominatedNodeName: status?.nominatedNodeName ?? '',
    priority: spec.priority ?? 0,
    startedMs: status?.startTime ? Date.parse(status.startTime) : Number.POSITIVE_INFINITY,
    deleting: metadata.deletionTimestamp !== undefined,
    preempted: disruption?.status === 'True' && disruption.reason === 'PreemptionByScheduler',
    owner: owner !== undefined && spreadOwners.includes(owner.kind) ? owner.uid : undefined,
    requirements: requirementsOf(pod),
    object: nodeName === '' ? pod : undefined,
  };
}

/** The state of a pod after its assignment to a node. */
export function assignedTo(pod: PodInfo, nodeName: string): PodInfo {
  return { ...pod, nodeName, nominatedNodeName: '', object: undefined };
}

function requirementsOf(pod: Pod): PodRequirements {
  const { spec, metadata = {} } = pod;
  const { namespace = '', name = '', labels = {} } = metadata;
  const claims = (spec.volumes ?? []).flatMap((volume): ClaimUse[] => {
    if (volume.persistentVolumeClaim) return [{ name: volume.persistentVolumeClaim.claimName ?? '', ephemeral: false }];
    return volume.ephemeral ? [{ name: `${name}-${volume.name}`, ephemeral: true }] : [];
  });
  const { affinity, topologySpreadConstraints: spread = [] } = spec;
  const others = affinity?.podAffinity !== undefined || affinity?.podAntiAffinity !== undefined || spread.length > 0;
  const key = JSON.stringify([
    others ? namespace : '',
    others ? labels : '',
    (spec.containers ?? []).map(partOf),
    (spec.initContainers ?? []).map(partOf),
    [spec.resources, spec.overhead, spec.nodeSelector, affinity, spread, spec.preemptionPolicy],
    (spec.tolerations ?? []).map(({ key, operator, value, effect }) => [key, operator, value, effect]),
    claims,
    spec.hostNetwork,
  ]);
  let requirements = known.get(key);
  if (requirements === undefined) {
    requirements = readRequirements(spec, namespace, labels, claims);
    if (known.size >= maxKnown) known.clear();
    known.set(key, requirements);
  }
  return requirements;
}

function partOf({ image, resources, ports, restartPolicy }: coreV1.Container): unknown {
  return [image, resources?.requests, ports?.some(({ hostPort }) => hostPort) ? ports : 0, restartPolicy];
}

function readRequirements(
  spec: coreV1.PodSpec,
  namespace: string,
  labels: Readonly<Record<string, string>>,
  claims: readonly ClaimUse[],
): PodRequirements {
  const { affinity: { nodeAffinity, podAffinity, podAntiAffinity } = {} } = spec;
  const containers = [...(spec.initContainers ?? []), ...(spec.containers ?? [])];
  const terms = (list: readonly coreV1.PodAffinityTerm[] = []) =>
    list.map((term) => podTermOf(term, namespace, labels));
  const weighted = (list: readonly coreV1.WeightedPodAffinityTerm[] = [], sign = 1) =>
    list.map(({ weight, podAffinityTerm }) => podTermOf(podAffinityTerm, namespace, labels, sign * weight));
  return {
    requests: podRequests(spec),
    scoredRequests: podRequests(spec, true),
    hostPorts: hostPortsOf(spec),
    nodeRules: nodeRulesOf(spec),
    preferredNodes: nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [],
    tolerations: spec.tolerations ?? [],
    affinity: terms(podAffinity?.requiredDuringSchedulingIgnoredDuringExecution),
    antiAffinity: terms(podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution),
    preferredPods: [
      ...weighted(podAffinity?.preferredDuringSchedulingIgnoredDuringExecution),
      ...weighted(podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution, -1),
    ],
    spread: (spec.topologySpreadConstraints ?? []).map((rule) => spreadRuleOf(rule, labels)),
    images: containers.map(({ image = '' }) => withTag(image)),
    claims,
    preempts: spec.preemptionPolicy !== 'Never',
  };
}

function hostPortsOf(spec: coreV1.PodSpec): HostPort[] {
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always');
  return [...(spec.containers ?? []), ...sidecars].flatMap(({ ports = [] }) =>
    ports
      .filter(({ hostPort = 0 }) => hostPort > 0)
      .map(({ hostPort = 0, hostIP, protocol }) => ({
        ip: hostIP || '0.0.0.0',
        protocol: protocol || 'TCP',
        port: hostPort,
      })),
  );
}

/** Returns the name of an image with a tag, as container runtimes report it. */
function withTag(image: string): string {
  return image.lastIndexOf(':') <= image.lastIndexOf('/') ? `${image}:latest` : image;
}

/** True when nothing changed that matters to other pods. */
export function isSameForOthers(a: PodInfo, b: PodInfo): boolean {
  return (
    a.nodeName === b.nodeName &&
    a.requirements === b.requirements &&
    a.deleting === b.deleting &&
    a.owner === b.owner &&
    isSameLabels(a.labels, b.labels)
  );
}

export function isSameLabels(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  if (a === b) return true;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}
