import type { IndexedHistory } from './indexed-history.ts';
import type { CallRecord, WatchClosed, WatchOpened } from './records.ts';
import type { TimeBounds } from './time-bounds.ts';
import type { Versions } from './versions.ts';
import type { Findings } from './violation.ts';

/** What a plane promises to keep; whichever keeps more. */
export interface Retention {
  readonly minChanges: number;
  readonly minAgeMs: number;
}

/** Writes of the server's own that a history does not know of: room for the number of changes to be greater than recorded. */
const foreignChanges = 50;

/** A 410 is right only for a revision that is older than what the plane promises to keep. */
export function checkGone(
  history: IndexedHistory,
  versions: Versions,
  bounds: TimeBounds,
  retention: Retention,
  findings: Findings,
): void {
  const judge = (revision: number, at: number, ...involved: (CallRecord | WatchOpened | WatchClosed)[]): void => {
    const written = versions.get(revision)?.write;
    const young = written !== undefined && at - written.start < retention.minAgeMs;
    const recent = bounds.begunBy(at) - revision + foreignChanges < retention.minChanges;
    if (!young && !recent) return;
    findings.add('I8', `revision ${revision} was said to be gone, but must still be kept`, ...involved);
  };
  for (const { opened, closed } of history.sessions) {
    if (closed?.why === 'gone' && 'after' in opened.from) judge(opened.from.after, closed.at, opened, closed);
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
