import { fieldError } from '@keelson/core';
import type { Errors } from '../validation/checks.ts';
import { checkNonNegative } from '../validation/checks.ts';
import { checkWorkload, type WorkloadSpec } from './check-workload.ts';
import { checkDeploymentPace, type RollingUpdate } from './rolling-update.ts';
import { checkCounts, checkNotAbove } from './status-counts.ts';

interface DeploymentSpec extends WorkloadSpec {
  readonly replicas?: number;
  readonly strategy?: { readonly type?: string; readonly rollingUpdate?: RollingUpdate };
  readonly revisionHistoryLimit?: number;
  readonly progressDeadlineSeconds?: number;
}

/** Validates the spec of a Deployment of all versions. */
export function checkDeployment(spec: DeploymentSpec, errors: Errors): void {
  checkNonNegative(spec.replicas, 'spec.replicas', errors);
  checkWorkload(spec, 'ReplicaSet', errors);
  checkStrategy(spec.strategy ?? {}, 'spec.strategy', errors);
  checkNonNegative(spec.revisionHistoryLimit, 'spec.revisionHistoryLimit', errors);
  const deadline = spec.progressDeadlineSeconds;
  checkNonNegative(deadline, 'spec.progressDeadlineSeconds', errors);
  if (deadline !== undefined && deadline <= (spec.minReadySeconds ?? 0)) {
    errors.push(fieldError.invalid('spec.progressDeadlineSeconds', deadline, 'must be greater than minReadySeconds'));
  }
}

function checkStrategy(strategy: NonNullable<DeploymentSpec['strategy']>, path: string, errors: Errors): void {
  switch (strategy.type) {
    case 'Recreate':
      if (strategy.rollingUpdate) {
        const detail = "may not be specified when strategy `type` is 'Recreate'";
        errors.push(fieldError.forbidden(`${path}.rollingUpdate`, detail));
      }
      break;
    case 'RollingUpdate':
      if (strategy.rollingUpdate) checkDeploymentPace(strategy.rollingUpdate, `${path}.rollingUpdate`, errors);
      else errors.push(fieldError.required(`${path}.rollingUpdate`, 'this should be defaulted and never be nil'));
      break;
    default:
      errors.push(fieldError.notSupported(`${path}.type`, strategy.type ?? '', ['Recreate', 'RollingUpdate']));
  }
}

interface DeploymentStatus {
  readonly observedGeneration?: number;
  readonly replicas?: number;
  readonly updatedReplicas?: number;
  readonly readyReplicas?: number;
  readonly availableReplicas?: number;
  readonly unavailableReplicas?: number;
  readonly collisionCount?: number;
}

const counts = [
  'observedGeneration',
  'replicas',
  'updatedReplicas',
  'readyReplicas',
  'availableReplicas',
  'unavailableReplicas',
  'collisionCount',
] as const;

/** Validates the status of a Deployment. */
export function checkDeploymentStatus(
  status: DeploymentStatus | undefined,
  old: DeploymentStatus | undefined,
  errors: Errors,
): void {
  if (!status) return;
  checkCounts(status, counts, errors);
  checkNotAbove(status, 'updatedReplicas', 'replicas', errors);
  checkNotAbove(status, 'readyReplicas', 'replicas', errors);
  checkNotAbove(status, 'availableReplicas', 'replicas', errors);
  checkNotAbove(status, 'availableReplicas', 'readyReplicas', errors, 'readyReplicas');
  if ((status.collisionCount ?? 0) < (old?.collisionCount ?? 0)) {
    errors.push(fieldError.invalid('status.collisionCount', status.collisionCount ?? 0, 'cannot be decremented'));
  }
}
