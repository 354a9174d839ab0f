import { isIPv4 } from 'node:net';
import {
  defineKind,
  type FieldError,
  fieldError,
  formatTime,
  type KindDefinition,
  qualifiedNameErrors,
  type SelectableField,
  type Strategy,
} from '@keelson/core';
import {
  checkIp,
  checkName,
  checkUnchanged,
  checkUnique,
  type Errors,
  newErrors,
  pushInvalid,
} from '../../validation/checks.ts';
import { bindingSubresource } from './pod/binding.ts';
import { checkPodSpec } from './pod/check-pod-spec.ts';
import { checkPodUpdate } from './pod/check-pod-update.ts';
import { defaultPodOnly, defaultPodSpec } from './pod/default-pod-spec.ts';
import { ephemeralContainersSubresource } from './pod/ephemeral-containers.ts';
import { evictionSubresource } from './pod/eviction.ts';
import { mergeLabelKeys } from './pod/label-keys.ts';
import { logSubresource } from './pod/log.ts';
import {
  applyAppArmorAnnotations,
  checkAnnotationChanges,
  checkPodAnnotations,
  checkProfileAnnotations,
} from './pod/pod-annotations.ts';
import { podColumns, podRowConditions } from './pod/pod-columns.ts';
import { nameWarnings, podSpecWarnings } from './pod/pod-warnings.ts';
import { resizeSubresource } from './pod/resize.ts';
import { qosClassOf } from './pod/resources.ts';
import { attachSubresource, execSubresource, podProxySubresource, portForwardSubresource } from './pod/streams.ts';
import { type ContainerStatus, type Pod as PodObject, PodSchema, type PodStatus } from './schema/index.ts';

const selectable: readonly SelectableField<PodObject>[] = [
  ['spec.nodeName', (pod) => pod.spec.nodeName ?? ''],
  ['spec.host', (pod) => pod.spec.nodeName ?? ''],
  ['spec.restartPolicy', (pod) => pod.spec.restartPolicy ?? ''],
  ['spec.schedulerName', (pod) => pod.spec.schedulerName ?? ''],
  ['spec.serviceAccountName', (pod) => pod.spec.serviceAccountName ?? ''],
  ['spec.hostNetwork', (pod) => String(pod.spec.hostNetwork ?? false)],
  ['status.phase', (pod) => pod.status?.phase ?? ''],
  ['status.podIP', (pod) => pod.status?.podIPs?.[0]?.ip ?? pod.status?.podIP ?? ''],
  ['status.podIPs', (pod) => (pod.status?.podIPs ?? []).map(({ ip }) => ip).join(',')],
  ['status.nominatedNodeName', (pod) => pod.status?.nominatedNodeName ?? ''],
];

/** Strategy of pods: status subresource, mostly immutable spec, graceful deletion. */
const podStrategy: Strategy<PodObject> = {
  generation: 'spec',
  deleteReturnsObject: true,
  default(pod) {
    defaultPodSpec(pod.spec);
    defaultPodOnly(pod.spec);
  },
  prepareForCreate(pod, { now, warn }) {
    if (pod.metadata?.annotations) applyAppArmorAnnotations(pod, warn);
    pod.status = { phase: 'Pending', qosClass: qosClassOf(pod.spec) };
    if (pod.spec.topologySpreadConstraints || pod.spec.affinity) mergeLabelKeys(pod);
    if (!pod.spec.schedulingGates?.length) return;
    pod.status.conditions = [
      {
        type: 'PodScheduled',
        status: 'False',
        lastTransitionTime: formatTime(now),
        reason: 'SchedulingGated',
        message: 'Scheduling is blocked due to non-empty scheduling gates',
      },
    ];
  },
  prepareForStatusUpdate(pod, old) {
    if (!pod.metadata) return;
    if (old.metadata?.ownerReferences) pod.metadata.ownerReferences = old.metadata.ownerReferences;
    else delete pod.metadata.ownerReferences;
    completePodStatus(pod, old);
  },
  validate: validatePod,
  validateCreate({ metadata, spec }) {
    const errors = newErrors();
    if (spec.ephemeralContainers?.length) {
      errors.push(fieldError.forbidden('spec.ephemeralContainers', 'cannot be set on create'));
    }
    if (metadata?.annotations) {
      checkProfileAnnotations(metadata.annotations, spec, 'metadata.annotations', 'spec', errors);
    }
    return errors;
  },
  validateUpdate(pod, old) {
    const errors = newErrors();
    if (pod.metadata?.annotations || old.metadata?.annotations) checkAnnotationChanges(pod, old, errors);
    // With the generation of the old pod the spec has not changed.
    const generation = pod.metadata?.generation;
    if (generation === undefined || generation !== old.metadata?.generation) checkPodUpdate(pod, old, errors);
    return errors;
  },
  validateStatusUpdate(pod, old) {
    const errors = newErrors();
    if (pod.metadata?.annotations || old.metadata?.annotations) checkAnnotationChanges(pod, old, errors);
    if (pod.metadata?.annotations) checkPodAnnotations(pod, errors);
    checkPodStatusUpdate(pod, old, errors);
    return errors;
  },
  warnings: (pod, old) =>
    old ? [] : [...nameWarnings(pod.metadata?.name ?? '', "the Pod's hostname"), ...podSpecWarnings(pod, '')],
  gracePeriod: podGracePeriod,
};

function validatePod(pod: PodObject): FieldError[] {
  const errors = newErrors();
  if (pod.metadata?.annotations) checkPodAnnotations(pod, errors);
  checkPodSpec(pod.spec, 'pod', 'spec', errors);
  return errors;
}

/**
 * The grace period of a deletion in seconds: the requested one, else that of the pod. A pod without a node, or in a
 * final phase, is removed at once. See docs/reference/api-rules.md#order-of-a-delete.
 */
export function podGracePeriod(pod: PodObject, requested: number | undefined): number | undefined {
  const phase = pod.status?.phase;
  if (!pod.spec.nodeName || phase === 'Failed' || phase === 'Succeeded') return undefined;
  const seconds = Number(requested ?? pod.spec.terminationGracePeriodSeconds ?? 30);
  if (seconds === 0) return undefined;
  return Math.max(seconds, 1);
}

/**
 * Restores what a status write leaves out, as older agents do: the class and the observed generations. `podIP` and the
 * first of `podIPs` are the same address; where they differ, `podIP` counts.
 */
function completePodStatus({ status }: PodObject, old: PodObject): void {
  if (!status) return;
  const before = old.status ?? {};
  if (!status.qosClass && before.qosClass) status.qosClass = before.qosClass;
  if (!status.observedGeneration && before.observedGeneration) status.observedGeneration = before.observedGeneration;
  const generations = new Map<string, (number | undefined)[]>();
  for (const { type, observedGeneration } of before.conditions ?? []) {
    const known = generations.get(type);
    if (known) known.push(observedGeneration);
    else generations.set(type, [observedGeneration]);
  }
  const taken = new Map<string, number>();
  for (const condition of status.conditions ?? []) {
    const index = taken.get(condition.type) ?? 0;
    taken.set(condition.type, index + 1);
    const generation = generations.get(condition.type)?.[index];
    if (!condition.observedGeneration && generation) condition.observedGeneration = generation;
  }
  const first = status.podIPs?.[0]?.ip;
  if (status.podIP && status.podIP !== first) status.podIPs = [{ ip: status.podIP }];
  else if (first) status.podIP = first;
}

/** Conditions whose types are not checked. */
const systemConditions: ReadonlySet<string> = new Set(['PodScheduled', 'Ready', 'Initialized']);
const negative = 'must be a non-negative integer';

/** Validates the status that an agent or a controller writes. */
function checkPodStatusUpdate(pod: PodObject, old: PodObject, errors: Errors): void {
  const [status, before] = [pod.status ?? {}, old.status ?? {}];
  status.conditions?.forEach(({ type, observedGeneration = 0 }, i) => {
    const at = `status.conditions[${i}]`;
    if (observedGeneration < 0) {
      errors.push(fieldError.invalid(`${at}.observedGeneration`, observedGeneration, negative));
    }
    if (!systemConditions.has(type)) pushInvalid(qualifiedNameErrors(type), type, `${at}.Type`, errors);
  });
  if (status.nominatedNodeName !== before.nominatedNodeName) {
    checkName(status.nominatedNodeName, 'dns1123Subdomain', 'status.nominatedNodeName', errors);
  }
  const { observedGeneration = 0 } = status;
  if (observedGeneration < 0) {
    errors.push(fieldError.invalid('status.observedGeneration', observedGeneration, negative));
  }
  if ((status.qosClass ?? '') !== (before.qosClass ?? '')) {
    checkUnchanged(status.qosClass ?? '', before.qosClass ?? '', 'status.qosClass', errors);
  }
  checkTransitions(pod, old, errors);
  checkClaimStatuses(status, pod, errors);
  checkAddresses(status.podIPs, before.podIPs, 'status.podIPs', errors);
  checkHostAddresses(status, before, errors);
}

/** Rejects a status in which a container that has terminated permanently is running or waiting again. */
function checkTransitions({ status }: PodObject, { spec, status: before }: PodObject, errors: Errors): void {
  const sidecars = new Set<string>();
  for (const { name, restartPolicy } of spec.initContainers ?? []) if (restartPolicy === 'Always') sidecars.add(name);
  const check = (
    field: 'initContainerStatuses' | 'containerStatuses' | 'ephemeralContainerStatuses',
    mayRestart: (status: ContainerStatus) => boolean,
  ) => {
    const resumed = new Set<string>();
    for (const { name, state } of status?.[field] ?? []) if (!state?.terminated) resumed.add(name);
    before?.[field]?.forEach((ended, i) => {
      if (!ended.state?.terminated || !resumed.has(ended.name) || mayRestart(ended)) return;
      errors.push(
        fieldError.forbidden(`status.${field}[${i}].state`, 'may not be transitioned to non-terminated state'),
      );
    });
  };
  const restarts = ({ state }: ContainerStatus) =>
    spec.restartPolicy === 'Always' || (spec.restartPolicy === 'OnFailure' && state?.terminated?.exitCode !== 0);
  check('containerStatuses', restarts);
  check('initContainerStatuses', (ended) => restarts(ended) || sidecars.has(ended.name));
  check('ephemeralContainerStatuses', () => false);
}

function checkClaimStatuses({ resourceClaimStatuses: statuses }: PodStatus, { spec }: PodObject, errors: Errors): void {
  if (!statuses?.length) return;
  const claims = new Set((spec.resourceClaims ?? []).map(({ name }) => name));
  const seen = new Set<string>();
  statuses.forEach(({ name, resourceClaimName }, i) => {
    const path = `status.resourceClaimStatuses[${i}].name`;
    if (!claims.has(name)) {
      errors.push(fieldError.invalid(path, name, 'must match the name of an entry in `spec.resourceClaims`'));
    }
    checkUnique(name, seen, path, errors);
    checkName(resourceClaimName, 'dns1123Subdomain', path, errors);
  });
}

type Addresses = readonly { readonly ip?: string }[] | undefined;

/** Requires at most one address of each family; addresses that were accepted before remain valid. */
function checkAddresses(addresses: Addresses, before: Addresses, path: string, errors: Errors): void {
  if (!addresses?.length) return;
  const known = new Set((before ?? []).map(({ ip }) => ip));
  const families = new Set<boolean>();
  addresses.forEach(({ ip = '' }, i) => {
    if (!known.has(ip)) checkIp(ip, `${path}[${i}]`, errors);
    families.add(isIPv4(ip));
  });
  if (addresses.length > 1 && families.size !== addresses.length) {
    // As Kubernetes shows them.
    const shown = addresses.map(({ ip }) => ({ IP: ip }));
    errors.push(fieldError.invalid(path, shown, 'may specify no more than one IP for each IP family'));
  }
}

function checkHostAddresses({ hostIP = '', hostIPs }: PodStatus, before: PodStatus, errors: Errors): void {
  const first = hostIPs?.[0]?.ip;
  if (first !== undefined && first !== hostIP) {
    errors.push(fieldError.invalid('status.hostIPs[0].ip', first, 'must be equal to `hostIP`'));
  }
  checkAddresses(hostIPs, before.hostIPs, 'status.hostIPs', errors);
}

/** Containers that run together on one node. */
export const Pod: KindDefinition<PodObject> = defineKind({
  group: '',
  version: 'v1',
  kind: 'Pod',
  names: { shortNames: ['po'], categories: ['all'] },
  schema: PodSchema,
  strategy: podStrategy,
  subresources: [
    { type: 'status', name: 'status' },
    bindingSubresource,
    ephemeralContainersSubresource,
    evictionSubresource,
    logSubresource,
    execSubresource,
    attachSubresource,
    portForwardSubresource,
    podProxySubresource,
    resizeSubresource,
  ],
  columns: podColumns,
  rowConditions: podRowConditions,
  selectableFields: selectable,
});
export type Pod = PodObject;
