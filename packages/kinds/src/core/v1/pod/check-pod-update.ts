import { fieldError } from '@keelson/core';
import { type Errors, sameJson } from '../../../validation/checks.ts';
import type { Container, Pod as PodObject, PodSpec, Toleration } from '../schema/index.ts';
import { checkGatedPodUpdate } from './check-gated-pod-update.ts';

const mutable = [
  '`spec.containers[*].image`',
  '`spec.initContainers[*].image`',
  '`spec.activeDeadlineSeconds`',
  '`spec.tolerations` (only additions to existing tolerations)',
  '`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)',
].join(',');

/** Rejects changes of fields of a pod that are immutable: see docs/reference/api-rules.md#validation-of-kinds. */
export function checkPodUpdate(pod: PodObject, old: PodObject, errors: Errors): void {
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
