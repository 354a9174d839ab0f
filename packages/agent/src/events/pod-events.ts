import type { Pod } from '@keelson/kinds';

export type EventType = 'Normal' | 'Warning';

/** Where the agent's parts tell what happened to a pod. Never fails and never waits. */
export interface PodEvents {
  /** `container` names the container of the pod that the event is about. */
  record(pod: Pod, type: EventType, reason: string, message: string, container?: string): void;
}
