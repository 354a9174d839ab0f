import type { PodStatus } from '@keelson/kinds';
import type { WaitingReason } from './status/container-statuses.ts';
import type { PodVerdict } from './status/pod-status.ts';

/**
 * What the agent remembers about a pod between two looks. Lost with the agent: whatever must not be lost is in the
 * runtime or at the API.
 */
export interface PodRecord {
  /** Why containers do not run, by name. */
  readonly waiting: Map<string, WaitingReason>;
  /** What was said last. */
  status: PodStatus;
  verdict: PodVerdict | undefined;
}

export function newPodRecord(status: PodStatus): PodRecord {
  return { waiting: new Map(), status, verdict: undefined };
}
