import type { Pod } from '@keelson/kinds';

/** The object that an event refers to. */
export interface EventSubject {
  readonly apiVersion: string;
  readonly kind: string;
  /** Absent for nodes. */
  readonly namespace?: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion?: string;
  /** The part of the object, such as `spec.containers{name}`. */
  readonly fieldPath?: string;
}

/** Records events of this node and its pods. */
export interface EventRecorder {
  /** Never throws and never waits. An event that cannot be sent is dropped. */
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
