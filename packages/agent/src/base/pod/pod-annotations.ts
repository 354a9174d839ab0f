import type { Pod } from '@keelson/kinds';

/** Annotations of pods that the agent reads and writes: see docs/reference/agent-rules.md#static-pods. */
export const PodAnnotation = {
  /** Where the pod came from: file, http or api. */
  source: 'kubernetes.io/config.source',
  /** UID of a static pod. */
  hash: 'kubernetes.io/config.hash',
  /** On the copy at the API: hash of the static pod it shows. */
  mirror: 'kubernetes.io/config.mirror',
} as const;

/** True for a pod of this machine's own, which the API server knows only as a copy. */
export function isStaticPod(pod: Pod): boolean {
  const source = pod.metadata?.annotations?.[PodAnnotation.source];
  return source !== undefined && source !== 'api';
}

/** True for the copy at the API. */
export function isMirrorPod(pod: Pod): boolean {
  return pod.metadata?.annotations?.[PodAnnotation.mirror] !== undefined;
}

export type SourceWord = 'file' | 'http' | 'api';

/** The source for the host-*-sources options. */
export function sourceWordOf(pod: Pod): SourceWord {
  const source = pod.metadata?.annotations?.[PodAnnotation.source];
  return source === 'file' || source === 'http' ? source : 'api';
}
