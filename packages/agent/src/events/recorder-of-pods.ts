import { type EventRecorder, podSubject } from '../contracts/event-recorder.ts';
import type { PodEvents } from './pod-events.ts';

/** Lets parts that speak of pods and containers tell through a recorder of events. */
export function podEventsOf(recorder: EventRecorder): PodEvents {
  return {
    record(pod, type, reason, message, container) {
      const isInit = pod.spec.initContainers?.some(({ name }) => name === container) ?? false;
      const fieldPath = container === undefined ? undefined : `spec.${isInit ? 'initContainers' : 'containers'}{${container}}`;
      recorder.record(podSubject(pod, fieldPath), type, reason, message);
    },
  };
}
