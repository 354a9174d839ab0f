import type { IndexedHistory, Session } from './indexed-history.ts';
import type { CallRecord, WatchClosed, WatchOpened } from './records.ts';
import { type Moment, TimeBounds } from './time-bounds.ts';
import type { Versions } from './versions.ts';
import type { Findings } from './violation.ts';

/** The history that a plane guarantees; both bounds apply. */
export interface Retention {
  readonly minChanges: number;
  readonly minAgeMs: number;
}

/**
 * Allowance for writes of the server itself, which a history does not contain: the number of changes may be greater
 * than the recorded one.
 */
const foreignChanges = 50;

/**
 * A 410 is correct only for a revision that is older than the guaranteed history, or older than a requested
 * compaction.
 */
export function checkGone(
  history: IndexedHistory,
  versions: Versions,
  bounds: TimeBounds,
  retention: Retention,
  findings: Findings,
): void {
  const released = releasedBounds(history);
  const judge = (revision: number, at: number, ...involved: (CallRecord | WatchOpened | WatchClosed)[]): void => {
    if (revision < released.floor(at)) return;
    const written = versions.get(revision)?.write;
    const young = written !== undefined && at - written.start < retention.minAgeMs;
    const recent = bounds.begunBy(at) - revision + foreignChanges < retention.minChanges;
    if (!young && !recent) return;
    findings.add('I8', `revision ${revision} was said to be gone, but must still be kept`, ...involved);
  };
  for (const session of history.sessions) {
    const { opened, closed } = session;
    if (closed?.why !== 'gone') continue;
    const position = positionOf(session, history);
    if (position !== undefined) judge(position, closed.at, opened, closed);
  }
  for (const pages of history.lists) {
    for (const page of pages) {
      if (page.reply.is !== 'refused' || page.reply.code !== 410) continue;
      const [first] = pages;
      const pinned =
        page.op.at.at === 'exact' ? page.op.at.revision : first?.reply.is === 'ok' ? first.reply.revision : undefined;
      if (pinned !== undefined) judge(pinned, page.end, page);
    }
  }
}

/** Returns the revision up to which a session had observed everything; undefined before the end of an initial state. */
function positionOf({ opened, steps }: Session, { objects }: IndexedHistory): number | undefined {
  const last = steps.at(-1);
  if (last?.t === 'bookmark') return last.revision;
  const told = 'after' in opened.from || steps.some((step) => step.t === 'bookmark');
  if (last !== undefined) return told ? objects.get(last.object)?.revision : undefined;
  return 'after' in opened.from ? opened.from.after : undefined;
}

/** The floor is the greatest revision of a requested compaction. */
function releasedBounds({ releases }: IndexedHistory): TimeBounds {
  const moments: Moment[] = releases.map(({ at, revision }) => ({ at, revision }));
  return new TimeBounds(moments, []);
}
