import type { Pod } from '@keelson/kinds';
import type { PodChange } from '../base/contracts/pod-source.ts';
import { isRecord } from '../base/is-record.ts';
import { sameValue } from '../base/same-value.ts';

/** Metadata that the server maintains and that does not change the desired state. */
const serverFields: ReadonlySet<string> = new Set(['resourceVersion', 'managedFields', 'generation', 'selfLink']);
/** Annotations that the agent adds. */
const own: ReadonlySet<string> = new Set(['kubernetes.io/config.seen']);
const inMetadata: ReadonlySet<string> = new Set([...serverFields, 'annotations']);

function sameBut(skipped: ReadonlySet<string>, a: unknown, b: unknown): boolean {
  if (!isRecord(a) || !isRecord(b)) return sameValue(a, b);
  for (const key of Object.keys(a)) if (!skipped.has(key) && !sameValue(a[key], b[key])) return false;
  for (const key of Object.keys(b)) if (b[key] !== undefined && a[key] === undefined && !skipped.has(key)) return false;
  return true;
}

/** True when two states of a pod describe the same desired state. */
export function sameIntention(a: Pod, b: Pod): boolean {
  const [before, now] = [a.metadata ?? {}, b.metadata ?? {}];
  return (
    sameValue(a.spec, b.spec) &&
    sameBut(inMetadata, before, now) &&
    sameBut(own, before.annotations ?? {}, now.annotations ?? {})
  );
}

/** The operation for a new state of a pod; undefined when nothing changed. */
export function changeOf(old: Pod | undefined, pod: Pod): PodChange['op'] | undefined {
  if (old === undefined) return 'add';
  if (old === pod) return undefined;
  if (!sameIntention(old, pod)) return 'update';
  return sameValue(old.status, pod.status) ? undefined : 'reconcile';
}
