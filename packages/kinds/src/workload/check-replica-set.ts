import type { Errors } from '../validation/checks.ts';
import { checkNonNegative } from '../validation/checks.ts';
import { checkWorkload, type WorkloadSpec } from './check-workload.ts';
import { checkCounts, checkNotAbove } from './status-counts.ts';

interface ReplicaSetSpec extends WorkloadSpec {
  readonly replicas?: number;
}

/** Validates the spec of a ReplicaSet of all versions. */
export function checkReplicaSet(spec: ReplicaSetSpec, errors: Errors): void {
  checkNonNegative(spec.replicas, 'spec.replicas', errors);
  checkWorkload(spec, 'ReplicaSet', errors);
}

interface ReplicaSetStatus {
  readonly observedGeneration?: number;
  readonly replicas?: number;
  readonly fullyLabeledReplicas?: number;
  readonly readyReplicas?: number;
  readonly availableReplicas?: number;
}

/** Validates the status of a ReplicaSet. */
export function checkReplicaSetStatus(status: ReplicaSetStatus | undefined, errors: Errors): void {
  if (!status) return;
  checkCounts(
    status,
    ['observedGeneration', 'replicas', 'fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'],
    errors,
  );
  checkNotAbove(status, 'fullyLabeledReplicas', 'replicas', errors);
  checkNotAbove(status, 'readyReplicas', 'replicas', errors);
  checkNotAbove(status, 'availableReplicas', 'replicas', errors);
  checkNotAbove(status, 'availableReplicas', 'readyReplicas', errors, 'readyReplicas');
}
