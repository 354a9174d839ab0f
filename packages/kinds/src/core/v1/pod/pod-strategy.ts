import { type FieldError, fieldError, type Strategy } from '@keelson/core';
import { checkName, newErrors } from '../../../validation/checks.ts';
import type { Pod } from '../schema/index.ts';
import { checkPodSpec } from './check-pod-spec.ts';
import { checkPodStatusUpdate, checkPodUpdate } from './check-pod-update.ts';
import { defaultPodOnly, defaultPodSpec } from './default-pod-spec.ts';
import { qosClassOf } from './qos-class.ts';

/** Strategy of pods: status subresource, mostly immutable spec, graceful deletion. */
export const podStrategy: Strategy<Pod> = {
  generation: 'none',
  deleteReturnsObject: true,
  default(pod) {
    defaultPodSpec(pod.spec);
    defaultPodOnly(pod.spec);
  },
  prepareForCreate(pod) {
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
  validateCreate: ({ spec }) =>
    spec.ephemeralContainers?.length
      ? [fieldError.forbidden('spec.ephemeralContainers', 'cannot be set on create')]
      : [],
  validateUpdate(pod, old) {
    const errors = newErrors();
    checkPodUpdate(pod, old, errors);
    return errors;
  },
  validateStatusUpdate(pod, old) {
    const errors = newErrors();
    checkPodStatusUpdate(pod, old, errors);
    checkName(pod.status?.nominatedNodeName, 'dns1123Subdomain', 'status.nominatedNodeName', errors);
    return errors;
  },
  gracePeriod: podGracePeriod,
};

function validatePod(pod: Pod): FieldError[] {
  const errors = newErrors();
  checkPodSpec(pod.spec, 'spec', errors);
  return errors;
}

/**
 * The grace period of a deletion in seconds: the requested one, else that of the pod. A pod without a node, or in a
 * final phase, is removed at once. See docs/reference/api-rules.md#order-of-a-delete.
 */
export function podGracePeriod(pod: Pod, requested: number | undefined): number | undefined {
  const phase = pod.status?.phase;
  if (!pod.spec.nodeName || phase === 'Failed' || phase === 'Succeeded') return undefined;
  const seconds = Number(requested ?? pod.spec.terminationGracePeriodSeconds ?? 30);
  if (seconds === 0) return undefined;
  return Math.max(seconds, 1);
}
