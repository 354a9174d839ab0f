import { fieldError } from '@keelson/core';
import type { StatefulSetSpec, StatefulSetStatus, StatefulSetUpdateStrategy } from '../apps/v1/schema/index.ts';
import type { PodTemplateSpec } from '../core/v1/schema/index.ts';
import { checkClaimSpec } from '../core/v1/volume-claim/check-claim-spec.ts';
import { checkName, checkNonNegative, type Errors, sameJson } from '../validation/checks.ts';
import { checkWorkload } from './check-workload.ts';
import { checkCount, checkNotAll } from './rolling-update.ts';
import { checkCounts, checkNotAbove } from './status-counts.ts';

/** Validates the spec of a StatefulSet. */
export function checkStatefulSet(spec: StatefulSetSpec, errors: Errors): void {
  const { podManagementPolicy, persistentVolumeClaimRetentionPolicy: retention } = spec;
  if (podManagementPolicy !== 'OrderedReady' && podManagementPolicy !== 'Parallel') {
    const detail = "must be 'OrderedReady' or 'Parallel'";
    errors.push(fieldError.invalid('spec.podManagementPolicy', podManagementPolicy ?? '', detail));
  }
  checkUpdateStrategy(spec.updateStrategy ?? {}, errors);
  for (const field of ['whenDeleted', 'whenScaled'] as const) {
    const policy = retention?.[field] ?? 'Retain';
    if (policy === 'Retain' || policy === 'Delete') continue;
    const path = `spec.persistentVolumeClaimRetentionPolicy.${field}`;
    errors.push(fieldError.notSupported(path, policy, ['Retain', 'Delete']));
  }
  checkNonNegative(spec.replicas, 'spec.replicas', errors);
  checkNonNegative(spec.ordinals?.start, 'spec.ordinals.start', errors);
  checkWorkload({ ...spec, template: templateWithClaims(spec) }, 'StatefulSet', errors);
}

/** Validates immutable fields of a new StatefulSet. They need not be validated again in an update. */
export function checkNewStatefulSet(spec: StatefulSetSpec, errors: Errors): void {
  for (const [i, claim] of (spec.volumeClaimTemplates ?? []).entries()) {
    checkClaimSpec(claim.spec, `spec.volumeClaimTemplates[${i}].spec`, errors);
  }
  checkName(spec.serviceName, 'dns1123Label', 'spec.serviceName', errors);
}

function checkUpdateStrategy(strategy: StatefulSetUpdateStrategy, errors: Errors): void {
  const { type, rollingUpdate } = strategy;
  const path = 'spec.updateStrategy';
  if (type === 'OnDelete') {
    if (!rollingUpdate) return;
    const detail = "only allowed for updateStrategy 'RollingUpdate'";
    errors.push(fieldError.invalid(`${path}.rollingUpdate`, rollingUpdate, detail));
  } else if (type === 'RollingUpdate') {
    const { partition, maxUnavailable } = rollingUpdate ?? {};
    checkNonNegative(partition, `${path}.rollingUpdate.partition`, errors);
    const at = `${path}.rollingUpdate.maxUnavailable`;
    checkCount(maxUnavailable, at, errors);
    if (maxUnavailable === 0 || (typeof maxUnavailable === 'string' && /^0+%$/.test(maxUnavailable))) {
      errors.push(fieldError.invalid(at, maxUnavailable, 'cannot be 0'));
    }
    checkNotAll(maxUnavailable, at, errors);
  } else {
    errors.push(fieldError.invalid(path, strategy, "must be 'RollingUpdate' or 'OnDelete'"));
  }
}

/**
 * The pod template as the controller will use it. A claim replaces the volume with the same name, and the controller
 * sets host name and subdomain.
 */
function templateWithClaims({ template, volumeClaimTemplates = [] }: StatefulSetSpec): PodTemplateSpec {
  const { subdomain: _, hostname: __, ...spec } = template.spec;
  const names = new Set(volumeClaimTemplates.map(({ metadata }) => metadata?.name ?? ''));
  if (names.size > 0) {
    const claims = [...names].map((name) => ({ name, persistentVolumeClaim: { claimName: name } }));
    spec.volumes = [...claims, ...(spec.volumes ?? []).filter(({ name }) => !names.has(name))];
  }
  return { ...template, spec };
}

const mutable = [
  'replicas',
  'template',
  'updateStrategy',
  'minReadySeconds',
  'ordinals',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
] as const;

/** Rejects changes of fields that are immutable. */
export function checkStatefulSetUpdate(spec: StatefulSetSpec, old: StatefulSetSpec, errors: Errors): void {
  const fixed: Record<string, unknown> = { ...spec };
  for (const field of mutable) fixed[field] = old[field];
  if (sameJson(fixed, old)) return;
  const detail =
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', " +
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
  errors.push(fieldError.forbidden('spec', detail));
}

const counts = [
  'replicas',
  'readyReplicas',
  'currentReplicas',
  'updatedReplicas',
  'availableReplicas',
  'observedGeneration',
  'collisionCount',
] as const;

/** Validates the status of a StatefulSet. */
export function checkStatefulSetStatus(
  status: StatefulSetStatus | undefined,
  old: StatefulSetStatus | undefined,
  errors: Errors,
): void {
  if (!status) return;
  checkCounts(status, counts, errors);
  for (const part of ['readyReplicas', 'currentReplicas', 'updatedReplicas', 'availableReplicas'] as const) {
    checkNotAbove(status, part, 'replicas', errors);
  }
  checkNotAbove(status, 'availableReplicas', 'readyReplicas', errors);
  if ((status.collisionCount ?? 0) < (old?.collisionCount ?? 0)) {
    errors.push(fieldError.invalid('status.collisionCount', status.collisionCount ?? 0, 'cannot be decremented'));
  }
}
