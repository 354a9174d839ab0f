import { type FieldError, fieldError, type Strategy } from '@keelson/core';
import { checkName } from '../../../validation/checks.ts';
import { newErrors } from '../../../validation/errors.ts';
import type { Pod } from '../schema/index.ts';
import { checkPodSpec } from './check-pod-spec.ts';
import { checkPodStatusUpdate } from './check-pod-status-update.ts';
import { checkPodUpdate } from './check-pod-update.ts';
import { defaultPodOnly, defaultPodSpec } from './default-pod-spec.ts';
import { qosClassOf } from './qos-class.ts';

/** Behaviour of pods: status of their own, spec all but fixed, graceful end. */
export const podStrategy: Strategy<Pod> = {
  statusSubresource: true,
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
  if (pod.spec.ephemeralContainers?.length) {
    errors.push(fieldError.forbidden('spec.ephemeralContainers', 'cannot be set on create'));
  }
  return errors;
}

/**
 * Seconds that a pod gets to end: what was asked for, else its own period. A pod that no node runs, or that has ended already,
 * goes at once (api-conventions 8.3).
 */
export function podGracePeriod(pod: Pod, requested: number | undefined): number | undefined {
  const phase = pod.status?.phase;
  if (!pod.spec.nodeName || phase === 'Failed' || phase === 'Succeeded') return undefined;
  const seconds = requested ?? pod.spec.terminationGracePeriodSeconds ?? 30;
  if (seconds === 0) return undefined;
  return Math.max(seconds, 1);
}
