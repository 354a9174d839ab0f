import type { Pod } from '@keelson/kinds';

/** Annotations of pods that the agent reads and writes: see docs/reference/agent-rules.md#static-pods. */
export const PodAnnotation = {
  /** The source of the pod: file, http or api. */
  source: 'kubernetes.io/config.source',
  /** UID of a static pod. */
  hash: 'kubernetes.io/config.hash',
  /** On a mirror pod: the hash of its static pod. */
  mirror: 'kubernetes.io/config.mirror',
} as const;

/** True for a pod that does not come from the API server, which has only a mirror pod of it. */
export function isStaticPod(pod: Pod): boolean {
  const source = pod.metadata?.annotations?.[PodAnnotation.source];
  return source !== undefined && source !== 'api';
}

/** True for a mirror pod, the copy of a static pod at the API server. */
export function isMirrorPod(pod: Pod): boolean {
  return pod.metadata?.annotations?.[PodAnnotation.mirror] !== undefined;
}

export type SourceAnnotationValue = 'file' | 'http' | 'api';

/** The source of the pod as the host-*-sources options name it. */
export function sourceWordOf(pod: Pod): SourceAnnotationValue {
  const source = pod.metadata?.annotations?.[PodAnnotation.source];
  return source === 'file' || source === 'http' ? source : 'api';
}
