import {
  defineKind,
  type FieldError,
  fieldError,
  type KindDefinition,
  type SelectableField,
  type Strategy,
} from '@keelson/core';
import { checkName, type Errors, newErrors, sameJson } from '../../validation/checks.ts';
import { bindingSubresource } from './pod/binding.ts';
import { checkGatedPodUpdate } from './pod/check-gated-pod-update.ts';
import { checkPodSpec } from './pod/check-pod-spec.ts';
import { defaultPodOnly, defaultPodSpec } from './pod/default-pod-spec.ts';
import { ephemeralContainersSubresource } from './pod/ephemeral-containers.ts';
import { evictionSubresource } from './pod/eviction.ts';
import { logSubresource } from './pod/log.ts';
import { podColumns, podRowConditions } from './pod/pod-columns.ts';
import { applyAppArmorAnnotations, checkAppArmorUpdate, checkProfileAnnotations } from './pod/profile-annotations.ts';
import { nameWarnings, podSpecWarnings } from './pod/pod-warnings.ts';
import { qosClassOf } from './pod/qos-class.ts';
import { resizeSubresource } from './pod/resize.ts';
import { attachSubresource, execSubresource, podProxySubresource, portForwardSubresource } from './pod/streams.ts';
import { type Container, type Pod as PodObject, PodSchema, type PodSpec, type Toleration } from './schema/index.ts';

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
  prepareForCreate(pod, { warn }) {
    applyAppArmorAnnotations(pod, warn);
    pod.status = { phase: 'Pending', qosClass: qosClassOf(pod.spec) };
    if (!pod.spec.schedulingGates?.length) return;
    pod.status.conditions = [
      {
        type: 'PodScheduled',
        status: 'False',
        reason: 'SchedulingGated',
        message: 'Scheduling is blocked due to non-empty scheduling gates',
      },
    ];
  },
  prepareForStatusUpdate(pod, old) {
    if (!pod.metadata) return;
    if (old.metadata?.ownerReferences) pod.metadata.ownerReferences = old.metadata.ownerReferences;
    else delete pod.metadata.ownerReferences;
    if (pod.status && !pod.status.qosClass && old.status?.qosClass) pod.status.qosClass = old.status.qosClass;
  },
  validate: validatePod,
  validateCreate({ metadata, spec }) {
    const errors = newErrors();
    if (spec.ephemeralContainers?.length) {
      errors.push(fieldError.forbidden('spec.ephemeralContainers', 'cannot be set on create'));
    }
    checkProfileAnnotations(metadata?.annotations, spec, 'metadata.annotations', 'spec', errors);
    return errors;
  },
  validateUpdate(pod, old) {
    const errors = newErrors();
    checkAppArmorUpdate(pod, old, errors);
    checkPodUpdate(pod, old, errors);
    return errors;
  },
  validateStatusUpdate(pod, old) {
    const errors = newErrors();
    checkPodStatusUpdate(pod, old, errors);
    checkName(pod.status?.nominatedNodeName, 'dns1123Subdomain', 'status.nominatedNodeName', errors);
    return errors;
  },
  warnings: (pod, old) =>
    old ? [] : [...nameWarnings(pod.metadata?.name ?? '', "the Pod's hostname"), ...podSpecWarnings(pod, '')],
  gracePeriod: podGracePeriod,
};

function validatePod(pod: PodObject): FieldError[] {
  const errors = newErrors();
  checkPodSpec(pod.spec, 'spec', errors);
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

const mutable = [
  '`spec.containers[*].image`',
  '`spec.initContainers[*].image`',
  '`spec.activeDeadlineSeconds`',
  '`spec.tolerations` (only additions to existing tolerations)',
  '`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)',
].join(',');

/** Rejects changes of fields of a pod that are immutable: see docs/reference/api-rules.md#validation-of-kinds. */
function checkPodUpdate(pod: PodObject, old: PodObject, errors: Errors): void {
  for (const field of ['containers', 'initContainers'] as const) {
    if ((pod.spec[field]?.length ?? 0) !== (old.spec[field]?.length ?? 0)) {
      errors.push(fieldError.forbidden(`spec.${field}`, 'pod updates may not add or remove containers'));
      return;
    }
  }
  checkDeadline(pod.spec.activeDeadlineSeconds, old.spec.activeDeadlineSeconds, errors);
  checkTolerationChange(pod.spec.tolerations ?? [], old.spec.tolerations ?? [], errors);
  const gated = checkGatedPodUpdate(pod.spec, old.spec, errors);
  if (!sameJson(withoutMutable(pod.spec, old.spec, gated), old.spec)) {
    errors.push(fieldError.forbidden('spec', `pod updates may not change fields other than ${mutable}`));
  }
}

/** The new spec with the old values of all mutable fields, for comparison with the old spec. */
function withoutMutable(spec: PodSpec, old: PodSpec, gated: Partial<PodSpec>): PodSpec {
  const images = (list: readonly Container[] | undefined, before: readonly Container[] | undefined) =>
    list?.map((container, i) => ({ ...container, image: before?.[i]?.image }) as Container);
  const grace = (old.terminationGracePeriodSeconds ?? 0) < 0 && spec.terminationGracePeriodSeconds === 1;
  const fixed: Record<string, unknown> = {
    ...spec,
    containers: images(spec.containers, old.containers),
    initContainers: images(spec.initContainers, old.initContainers),
    activeDeadlineSeconds: old.activeDeadlineSeconds,
    tolerations: old.tolerations,
    ...gated,
  };
  if (grace) fixed['terminationGracePeriodSeconds'] = old.terminationGracePeriodSeconds;
  return fixed as unknown as PodSpec;
}

function checkDeadline(seconds: number | undefined, old: number | undefined, errors: Errors): void {
  if (old === undefined || seconds === old) return;
  if (seconds === undefined) {
    errors.push(
      fieldError.invalid('spec.activeDeadlineSeconds', null, 'must not update from a positive integer to nil value'),
    );
  } else if (seconds > old) {
    errors.push(
      fieldError.invalid('spec.activeDeadlineSeconds', seconds, 'must be less than or equal to previous value'),
    );
  }
}

/** Permits added tolerations and changes of `tolerationSeconds`; rejects all other changes of tolerations. */
function checkTolerationChange(tolerations: readonly Toleration[], old: readonly Toleration[], errors: Errors): void {
  const identity = ({ key, operator, value, effect, tolerationSeconds }: Toleration) =>
    JSON.stringify([
      key ?? '',
      operator ?? '',
      value ?? '',
      effect ?? '',
      effect === 'NoExecute' ? '' : `${tolerationSeconds}`,
    ]);
  const now = new Set(tolerations.map(identity));
  if (old.every((before) => now.has(identity(before)))) return;
  errors.push(
    fieldError.forbidden('spec.tolerations', 'existing toleration can not be modified except its tolerationSeconds'),
  );
}

/** Rejects a status in which a container that has terminated permanently is running or waiting again. */
function checkPodStatusUpdate(pod: PodObject, old: PodObject, errors: Errors): void {
  const { restartPolicy } = pod.spec;
  if (restartPolicy === 'Always') return;
  const sidecars = new Set<string>();
  for (const container of pod.spec.initContainers ?? [])
    if (container.restartPolicy === 'Always') sidecars.add(container.name);
  for (const field of ['initContainerStatuses', 'containerStatuses'] as const) {
    const ended = new Set<string>();
    for (const { name, state } of old.status?.[field] ?? []) {
      if (!state?.terminated || (field === 'initContainerStatuses' && sidecars.has(name))) continue;
      if (restartPolicy !== 'OnFailure' || state.terminated.exitCode === 0) ended.add(name);
    }
    pod.status?.[field]?.forEach(({ name, state }, i) => {
      if (!ended.has(name) || state?.terminated) return;
      errors.push(
        fieldError.forbidden(`status.${field}[${i}].state`, 'may not be transitioned to non-terminated state'),
      );
    });
  }
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
