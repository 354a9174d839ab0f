import { type Column, defineKind, type FieldError, fieldError, type KindDefinition } from '@keelson/core';
import { ageColumn, column, nameColumn } from '../../columns/columns.ts';
import { checkLabelSelector, newErrors } from '../../validation/checks.ts';
import { checkConditions } from '../../validation/conditions.ts';
import { checkCount, checkNotAll } from '../../workload/rolling-update.ts';
import { checkCounts } from '../../workload/status-counts.ts';
import { PodDisruptionBudgetSchema, type PodDisruptionBudget as PodDisruptionBudgetType } from './schema/index.ts';

const evictionPolicies = ['AlwaysAllow', 'IfHealthyBudget'];

const columns: readonly Column<PodDisruptionBudgetType>[] = [
  nameColumn(),
  column('Min Available', 'string', 'Pods that must remain.', ({ spec }) => countText(spec.minAvailable)),
  column('Max Unavailable', 'string', 'Pods that may be missing.', ({ spec }) => countText(spec.maxUnavailable)),
  column(
    'Allowed Disruptions',
    'integer',
    'Evictions that are allowed now.',
    ({ status }) => status?.disruptionsAllowed ?? 0,
  ),
  ageColumn,
];

/** Limits how many pods of a set are evicted at once. */
export const PodDisruptionBudget: KindDefinition<PodDisruptionBudgetType> = defineKind({
  group: 'policy',
  version: 'v1',
  kind: 'PodDisruptionBudget',
  names: { shortNames: ['pdb'] },
  schema: PodDisruptionBudgetSchema,
  strategy: {
    // Kubernetes never validated the names of budgets.
    nameRule: 'pathSegment',
    generation: 'spec',
    allowUnconditionalUpdate: false,
    validate: validateBudget,
    validateStatusUpdate({ status }) {
      const errors = newErrors();
      if (!status) return errors;
      checkConditions(status.conditions, 'status.conditions', errors);
      checkCounts(status, ['disruptionsAllowed', 'currentHealthy', 'desiredHealthy', 'expectedPods'], errors);
      return errors;
    },
  },
  subresources: [{ type: 'status', name: 'status' }],
  columns,
});
export type PodDisruptionBudget = PodDisruptionBudgetType;

function countText(count: number | string | undefined): string {
  return count === undefined ? 'N/A' : String(count);
}

function validateBudget({ spec }: PodDisruptionBudgetType): FieldError[] {
  const errors = newErrors();
  if (spec.minAvailable !== undefined && spec.maxUnavailable !== undefined) {
    errors.push(fieldError.invalid('spec', spec, 'minAvailable and maxUnavailable cannot be both set'));
  }
  for (const field of ['minAvailable', 'maxUnavailable'] as const) {
    checkCount(spec[field], `spec.${field}`, errors);
    checkNotAll(spec[field], `spec.${field}`, errors);
  }
  checkLabelSelector(spec.selector, 'spec.selector', errors);
  const policy = spec.unhealthyPodEvictionPolicy;
  if (policy !== undefined && !evictionPolicies.includes(policy)) {
    errors.push(fieldError.notSupported('spec.unhealthyPodEvictionPolicy', policy, evictionPolicies));
  }
  return errors;
}
