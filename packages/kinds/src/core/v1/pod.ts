import {
  defineKind,
  type FieldError,
  fieldError,
  formatTime,
  type KindDefinition,
  type SelectableField,
  type Strategy,
} from '@keelson/core';
import { newErrors } from '../../validation/checks.ts';
import { bindingSubresource } from './pod/binding.ts';
import { checkPodSpec } from './pod/check-pod-spec.ts';
import { checkPodStatusUpdate, completePodStatus } from './pod/check-pod-status.ts';
import { checkPodUpdate } from './pod/check-pod-update.ts';
import { defaultPodOnly, defaultPodSpec } from './pod/default-pod-spec.ts';
import { ephemeralContainersSubresource } from './pod/ephemeral-containers.ts';
import { evictionSubresource } from './pod/eviction.ts';
import { mergeLabelKeys } from './pod/label-keys.ts';
import { logSubresource } from './pod/log.ts';
import { podColumns, podRowConditions } from './pod/pod-columns.ts';
import { nameWarnings, podSpecWarnings } from './pod/pod-warnings.ts';
import { applyAppArmorAnnotations, checkAnnotationChanges, checkPodAnnotations, checkProfileAnnotations } from './pod/pod-annotations.ts';
import { qosClassOf } from './pod/qos-class.ts';
import { resizeSubresource } from './pod/resize.ts';
import { attachSubresource, execSubresource, podProxySubresource, portForwardSubresource } from './pod/streams.ts';
import { type Pod as PodObject, PodSchema } from './schema/index.ts';

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
    applyAppArmorAnnotations(pod, warn);
    pod.status = { phase: 'Pending', qosClass: qosClassOf(pod.spec) };
    mergeLabelKeys(pod);
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
    checkProfileAnnotations(metadata?.annotations, spec, 'metadata.annotations', 'spec', errors);
    return errors;
  },
  validateUpdate(pod, old) {
    const errors = newErrors();
    checkAnnotationChanges(pod, old, errors);
    checkPodUpdate(pod, old, errors);
    return errors;
  },
  validateStatusUpdate(pod, old) {
    const errors = newErrors();
    checkAnnotationChanges(pod, old, errors);
    checkPodAnnotations(pod, errors);
    checkPodStatusUpdate(pod, old, errors);
    return errors;
  },
  warnings: (pod, old) =>
    old ? [] : [...nameWarnings(pod.metadata?.name ?? '', "the Pod's hostname"), ...podSpecWarnings(pod, '')],
  gracePeriod: podGracePeriod,
};

function validatePod(pod: PodObject): FieldError[] {
  const errors = newErrors();
  checkPodAnnotations(pod, errors);
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
