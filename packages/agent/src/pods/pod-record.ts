import type { PodStatus } from '@keelson/kinds';
import type { WaitingReason } from './status/container-statuses.ts';
import type { PodVerdict } from './status/pod-status.ts';

/**
 * The agent's record of a pod between two syncs. It is lost when the agent ends; durable facts are in the runtime or in
 * the API.
 */
export interface PodRecord {
  /** Why containers are waiting, by name. */
  readonly waiting: Map<string, WaitingReason>;
  /** The last reported status. */
  status: PodStatus;
  verdict: PodVerdict | undefined;
}

export function newPodRecord(status: PodStatus): PodRecord {
  return { waiting: new Map(), status, verdict: undefined };
}
