import type { IndexedHistory } from './indexed-history.ts';
import { isWholeKind } from './selection.ts';
import type { Versions } from './versions.ts';

/**
 * Kinds with an incomplete history: watches of the whole kind do not cover all writes from the first to the last, so
 * that deletions and writes of unknown outcome may be missing. Nothing can be proved about these kinds.
 */
export function uncoveredKinds(history: IndexedHistory, versions: Versions): string[] {
  return versions.kinds.filter((kind) => {
    const revisions = versions.keys(kind).flatMap((key) => versions.chain(key).map(({ revision }) => revision));
    const last = revisions.reduce((greatest, revision) => Math.max(greatest, revision), 0);
    let reached = revisions.reduce((least, revision) => Math.min(least, revision), Number.POSITIVE_INFINITY) - 1;
    for (const [from, to] of spans(history, kind)) {
      if (from > reached) break;
      reached = Math.max(reached, to);
    }
    return reached < last;
  });
}

/** The revisions `(from, to]` that each watch of the whole kind has observed, sorted by `from`. */
function spans(history: IndexedHistory, kind: string): (readonly [number, number])[] {
  const result: (readonly [number, number])[] = [];
  for (const { opened, steps } of history.sessions) {
    if (opened.selection.kind !== kind || !isWholeKind(opened.selection) || !('after' in opened.from)) continue;
    const last = steps.at(-1);
    if (last === undefined) continue;
    const to = last.t === 'bookmark' ? last.revision : (history.objects.get(last.object)?.revision ?? 0);
    result.push([opened.from.after, to]);
  }
  return result.sort((a, b) => a[0] - b[0]);
}
