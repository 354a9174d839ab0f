import { resolveIntOrPercent } from '@keelson/core';
import type { Deployment } from '@keelson/kinds';

export function isRollingUpdate({ spec }: Deployment): boolean {
  return spec.strategy?.type === 'RollingUpdate';
}

/** Pods that a deployment may have beyond its replicas. */
export function maxSurge(deployment: Deployment): number {
  return isRollingUpdate(deployment) ? limits(deployment).surge : 0;
}

/** Replicas that may be unavailable during a rollout. */
export function maxUnavailable(deployment: Deployment): number {
  const { replicas = 1 } = deployment.spec;
  if (!isRollingUpdate(deployment) || replicas === 0) return 0;
  return Math.min(limits(deployment).unavailable, replicas);
}

/**
 * `maxSurge` and `maxUnavailable` as numbers of pods. If percentages round both to 0, one pod may be unavailable, since
 * otherwise no rollout could begin.
 */
function limits({ spec }: Deployment): { surge: number; unavailable: number } {
  const { replicas = 1 } = spec;
  const pace = spec.strategy?.rollingUpdate ?? {};
  const surge = resolveIntOrPercent(pace.maxSurge ?? 0, replicas, 'up') ?? 0;
  const unavailable = resolveIntOrPercent(pace.maxUnavailable ?? 0, replicas, 'down') ?? 0;
  return { surge, unavailable: surge === 0 && unavailable === 0 ? 1 : unavailable };
}

/** The greatest 32-bit integer, which means "no limit". */
const unlimited = 2_147_483_647;

export function progressDeadlineSeconds({ spec }: Deployment): number | undefined {
  return spec.progressDeadlineSeconds === unlimited ? undefined : spec.progressDeadlineSeconds;
}

export function revisionHistoryLimit({ spec }: Deployment): number | undefined {
  return spec.revisionHistoryLimit === unlimited ? undefined : spec.revisionHistoryLimit;
}
