import { formatTime, type Time } from '@keelson/core';
import type { Clock } from '@keelson/core/runtime';
import { isSame } from './object-patches.ts';

/** The fields that conditions of all kinds have. */
export interface ConditionFields {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: Time;
}

/**
 * Returns the conditions with one of them set. Its `lastTransitionTime` is now when its status changes, and remains
 * otherwise. Returns the same list when nothing changes.
 */
export function withCondition<C extends ConditionFields>(
  conditions: readonly C[] | undefined,
  condition: Omit<C, 'lastTransitionTime'>,
  clock: Clock,
): readonly C[] {
  const known = conditions ?? [];
  const at = known.findIndex(({ type }) => type === condition.type);
  const before = known[at];
  const lastTransitionTime =
    before?.status === condition.status ? before.lastTransitionTime : formatTime(new Date(clock.now()));
  const after = { ...before, ...condition, lastTransitionTime } as C;
  if (before === undefined) return [...known, after];
  return isSame(before, after) ? known : known.with(at, after);
}

/** The condition of a type. */
export function conditionOf<C extends ConditionFields>(
  conditions: readonly C[] | undefined,
  type: string,
): C | undefined {
  return conditions?.find((condition) => condition.type === type);
}

/** True when the condition of a type has the status True. */
export function isConditionTrue(conditions: readonly ConditionFields[] | undefined, type: string): boolean {
  return conditionOf(conditions, type)?.status === 'True';
}
