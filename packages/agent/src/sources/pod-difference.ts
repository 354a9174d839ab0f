import type { Pod } from '@keelson/kinds';
import type { PodChange } from '../base/contracts/pod-source.ts';
import { isRecord } from '../base/is-record.ts';
import { sameValue } from '../base/same-value.ts';

/** What the server keeps its books with: no wish of anybody's. */
const books: ReadonlySet<string> = new Set(['resourceVersion', 'managedFields', 'generation', 'selfLink']);
/** What the agent adds itself. */
const own: ReadonlySet<string> = new Set(['kubernetes.io/config.seen']);
const inMetadata: ReadonlySet<string> = new Set([...books, 'annotations']);

function sameBut(skipped: ReadonlySet<string>, a: unknown, b: unknown): boolean {
  if (!isRecord(a) || !isRecord(b)) return sameValue(a, b);
  for (const key of Object.keys(a)) if (!skipped.has(key) && !sameValue(a[key], b[key])) return false;
  for (const key of Object.keys(b)) if (b[key] !== undefined && a[key] === undefined && !skipped.has(key)) return false;
  return true;
}

/** True when two states of a pod want the same. */
export function sameIntention(a: Pod, b: Pod): boolean {
  const [before, now] = [a.metadata ?? {}, b.metadata ?? {}];
  return (
    sameValue(a.spec, b.spec) &&
    sameBut(inMetadata, before, now) &&
    sameBut(own, before.annotations ?? {}, now.annotations ?? {})
  );
}

/** What a source's new word about a pod means, or undefined when it says nothing new. */
export function changeOf(old: Pod | undefined, pod: Pod): PodChange['op'] | undefined {
  if (old === undefined) return 'add';
  if (old === pod) return undefined;
  if (!sameIntention(old, pod)) return 'update';
  return sameValue(old.status, pod.status) ? undefined : 'reconcile';
}
