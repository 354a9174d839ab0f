import type { PodDisruptionBudget } from '@keelson/kinds';

type Conditions = NonNullable<NonNullable<PodDisruptionBudget['status']>['conditions']>;

/** The conditions of a disruption budget for a number of permitted evictions. `at` is the current time. */
export function disruptionConditions(
  conditions: Conditions | undefined,
  disruptionsAllowed: number,
  observedGeneration: number | undefined,
  at: string,
): Conditions {
  const known = conditions ?? [];
  const status = disruptionsAllowed > 0 ? 'True' : 'False';
  const before = known.find(({ type }) => type === 'DisruptionAllowed');
  const condition = {
    type: 'DisruptionAllowed',
    status,
    ...(observedGeneration === undefined ? {} : { observedGeneration }),
    lastTransitionTime: before?.status === status ? before.lastTransitionTime : at,
    reason: disruptionsAllowed > 0 ? 'SufficientPods' : 'InsufficientPods',
    message: '',
  };
  return [...known.filter(({ type }) => type !== 'DisruptionAllowed'), condition];
}
