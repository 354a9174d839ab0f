import type { Pod } from '@keelson/kinds';

/** What an event is about. */
export interface EventSubject {
  readonly apiVersion: string;
  readonly kind: string;
  /** Absent for nodes. */
  readonly namespace?: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion?: string;
  /** A part of the object: `spec.containers{name}`. */
  readonly fieldPath?: string;
}

/** Tells users what happens on this node. */
export interface EventRecorder {
  /** Never throws and never waits: events are a courtesy, and what cannot be sent is dropped. */
  record(subject: EventSubject, type: 'Normal' | 'Warning', reason: string, message: string): void;
}

/** For agents without an API server. */
export const noEvents: EventRecorder = { record: () => {} };

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
