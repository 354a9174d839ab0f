import { isDeepStrictEqual } from 'node:util';
import type { Pod } from '@keelson/kinds';
import type { PodChange } from '../contracts/pod-source.ts';

/** What the server keeps its books with, and the agent adds itself: no wish of anybody's. */
function intention(pod: Pod): unknown {
  const { resourceVersion, managedFields, generation, selfLink, annotations, ...rest } = pod.metadata ?? {};
  const { 'kubernetes.io/config.seen': seen, ...own } = annotations ?? {};
  return { spec: pod.spec, metadata: { ...rest, annotations: own } };
}

/** What a source's new word about a pod means, or undefined when it says nothing new. */
export function changeOf(old: Pod | undefined, pod: Pod): PodChange['op'] | undefined {
  if (old === undefined) return 'add';
  if (old === pod) return undefined;
  if (!isDeepStrictEqual(intention(old), intention(pod))) return 'update';
  return isDeepStrictEqual(old.status, pod.status) ? undefined : 'reconcile';
}
