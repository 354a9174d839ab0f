import type { Pod } from '@keelson/kinds';
import { type EventRecorder, podSubject } from '../contracts/event-recorder.ts';
import { initContainersOf } from '../pod/pod-spec.ts';

export type EventType = 'Normal' | 'Warning';

/** Where the agent's parts tell what happened to a pod. Never fails and never waits. */
export interface PodEvents {
  /** `container` names the container of the pod that the event is about. */
  record(pod: Pod, type: EventType, reason: string, message: string, container?: string): void;
}

/** Events about pods, with containers named as parts of their specification. */
export function podEvents(recorder: EventRecorder): PodEvents {
  return {
    record(pod, type, reason, message, container) {
      const init = initContainersOf(pod).some(({ name }) => name === container);
      const path = container === undefined ? undefined : `spec.${init ? 'initContainers' : 'containers'}{${container}}`;
      recorder.record(podSubject(pod, path), type, reason, message);
    },
  };
}
