import type { EventRecorder, EventSubject } from '@keelson/client';
import type { Pod } from '@keelson/kinds';
import { initContainersOf } from '../pod/pod-spec.ts';

export { type EventRecorder, type EventSubject, noEvents } from '@keelson/client';

/** A pod, or one of its containers, as the subject of an event. */
export function podSubject(pod: Pod, fieldPath?: string): EventSubject {
  const { name = '', namespace, uid = '', resourceVersion } = pod.metadata ?? {};
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    name,
    uid,
    ...(namespace === undefined ? {} : { namespace }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    ...(fieldPath === undefined ? {} : { fieldPath }),
  };
}

export type EventType = 'Normal' | 'Warning';

/** Records events of pods. Never fails and never waits. */
export interface PodEvents {
  /** @param container the container that the event refers to */
  record(pod: Pod, type: EventType, reason: string, message: string, container?: string): void;
}

/** Records events of pods; a container is named by its field path in the specification. */
export function podEvents(recorder: EventRecorder): PodEvents {
  return {
    record(pod, type, reason, message, container) {
      const init = initContainersOf(pod).some(({ name }) => name === container);
      const path = container === undefined ? undefined : `spec.${init ? 'initContainers' : 'containers'}{${container}}`;
      recorder.record(podSubject(pod, path), type, reason, message);
    },
  };
}
