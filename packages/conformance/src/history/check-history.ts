import { checkFields } from './check-fields.ts';
import { checkGone, type Retention } from './check-gone.ts';
import { checkLists } from './check-lists.ts';
import { checkReads } from './check-reads.ts';
import { checkWatches } from './check-watches.ts';
import { checkUnseenDeletes, checkWrites } from './check-writes.ts';
import { uncoveredKinds } from './coverage.ts';
import { type IndexedHistory, indexHistory } from './indexed-history.ts';
import { matchWrites } from './match-writes.ts';
import type { History } from './recorder.ts';
import { type Moment, TimeBounds } from './time-bounds.ts';
import { collectVersions, type Versions } from './versions.ts';
import { describeViolation, Findings, type Violation } from './violation.ts';

/** Requirements of a history in addition to correctness. */
export interface CheckOptions {
  /** The history that the plane guarantees. Default 1000 changes and five minutes. */
  readonly retention?: Retention;
  /** With fewer acknowledged writes the run is inconclusive. Default 100. */
  readonly minWrites?: number;
  /** With fewer watch events the run is inconclusive. Default 1000. */
  readonly minEvents?: number;
  /** Number of violations that are reported with their operations. Default 10. */
  readonly maxViolations?: number;
}

/** Size of the checked history. */
export interface HistoryCounts {
  readonly acknowledged: number;
  readonly refused: number;
  /** Writes with an unknown outcome. */
  readonly unknown: number;
  /** Writes of unknown outcome that took effect. */
  readonly settled: number;
  readonly conditional: number;
  readonly gets: number;
  readonly lists: number;
  readonly pages: number;
  readonly sessions: number;
  readonly resumed: number;
  readonly gone: number;
  /** Number of requested compactions. */
  readonly releases: number;
  readonly events: number;
  readonly bookmarks: number;
  readonly versions: number;
}

/**
 * `ok`: the history is strictly serializable and all watches are complete. `violations`: it is not. `inconclusive`:
 * no violation was found, but the history is too small.
 */
export interface Verdict {
  readonly verdict: 'ok' | 'violations' | 'inconclusive';
  readonly counts: HistoryCounts;
  /** The first violations. */
  readonly violations: readonly Violation[];
  readonly totalViolations: number;
  /** Why the run is inconclusive. */
  readonly reasons: readonly string[];
}

/**
 * Checks a recorded history. Revisions determine the order of all writes, so that no search is needed: the records are
 * sorted and replayed, and every read, list and watch is compared with the replay. Time O(n log n).
 */
export function checkHistory(history: History, options: CheckOptions = {}): Verdict {
  const {
    retention = { minChanges: 1000, minAgeMs: 300_000 },
    minWrites = 100,
    minEvents = 1000,
    maxViolations = 10,
  } = options;
  const indexed = indexHistory(history);
  const findings = new Findings(maxViolations);
  const versions = collectVersions(indexed, findings);
  const { unseenDeletes, settledUnknown } = matchWrites(indexed, versions, findings);
  const bounds = boundsOf(indexed, versions);
  checkWrites(versions, bounds, findings);
  const openDeletes = checkUnseenDeletes(indexed, unseenDeletes, versions, findings);
  checkFields(versions, findings);
  checkWatches(indexed, versions, bounds, findings);
  checkLists(indexed, versions, bounds, findings);
  checkReads(indexed, versions, bounds, findings);
  checkGone(indexed, versions, bounds, retention, findings);

  const counts = countTraffic(indexed, versions, settledUnknown);
  const reasons: string[] = [];
  if (history.truncated) reasons.push('records were dropped');
  if (counts.acknowledged < minWrites)
    reasons.push(`${counts.acknowledged} acknowledged writes, at least ${minWrites} are needed`);
  if (counts.events < minEvents) reasons.push(`${counts.events} watch events, at least ${minEvents} are needed`);
  for (const kind of uncoveredKinds(indexed, versions))
    reasons.push(`no watch of all ${kind} from the first write to the last`);
  if (openDeletes > 0) reasons.push(`${openDeletes} acknowledged deletes are in no watch`);
  const verdict = findings.total > 0 ? 'violations' : reasons.length > 0 ? 'inconclusive' : 'ok';
  return { verdict, counts, violations: findings.violations, totalViolations: findings.total, reasons };
}

/** Times at which revisions were observed; a revision exists from then on. */
function seenMoments({ objects, writes, gets, lists, sessions }: IndexedHistory): Moment[] {
  const moments: Moment[] = [];
  const saw = (at: number, id: number | undefined) => {
    const object = id === undefined ? undefined : objects.get(id);
    if (object !== undefined) moments.push({ at, revision: object.revision });
  };
  for (const { end, reply } of [...writes, ...gets]) if (reply.is === 'ok') saw(end, reply.object);
  for (const { end, reply } of lists.flat())
    if (reply.is === 'ok') moments.push({ at: end, revision: reply.revision ?? 0 });
  for (const { steps } of sessions) {
    for (const step of steps) {
      if (step.t === 'event') saw(step.at, step.object);
      else moments.push({ at: step.at, revision: step.revision });
    }
  }
  return moments;
}

function boundsOf(indexed: IndexedHistory, versions: Versions): TimeBounds {
  const seen = seenMoments(indexed);
  const begun: Moment[] = [];
  for (const kind of versions.kinds) {
    for (const key of versions.keys(kind)) {
      for (const { revision, write } of versions.chain(key)) {
        if (write === undefined) continue;
        begun.push({ at: write.start, revision });
        // The response of a delete does not contain its revision; the deletion has happened before the response
        // arrived.
        if (write.reply.is === 'ok') seen.push({ at: write.end, revision });
      }
    }
  }
  return new TimeBounds(seen, begun);
}

function countTraffic(indexed: IndexedHistory, versions: Versions, settled: number): HistoryCounts {
  const { writes, gets, lists, sessions, releases } = indexed;
  const replies = (is: string) => writes.filter(({ reply }) => reply.is === is).length;
  const steps = (t: string) =>
    sessions.reduce((sum, session) => sum + session.steps.filter((step) => step.t === t).length, 0);
  return {
    acknowledged: replies('ok'),
    refused: replies('refused'),
    unknown: replies('unknown'),
    settled,
    conditional: writes.filter(({ op, reply }) => reply.is === 'ok' && op.do !== 'create' && op.expect !== undefined)
      .length,
    gets: gets.filter(({ reply }) => reply.is !== 'unknown').length,
    lists: lists.filter(([first]) => first?.reply.is === 'ok').length,
    pages: lists.flat().filter(({ reply }) => reply.is === 'ok').length,
    sessions: sessions.length,
    resumed: sessions.filter(({ opened }) => opened.resumed).length,
    gone: sessions.filter(({ closed }) => closed?.why === 'gone').length,
    releases: releases.length,
    events: steps('event'),
    bookmarks: steps('bookmark'),
    versions: versions.kinds.reduce(
      (sum, kind) => sum + versions.keys(kind).reduce((all, key) => all + versions.chain(key).length, 0),
      0,
    ),
  };
}

/** Describes a verdict: one line with the traffic, then the violations. */
export function describeVerdict({ verdict, counts, violations, totalViolations, reasons }: Verdict): string {
  const traffic = Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
  const more = totalViolations > violations.length ? [`... and ${totalViolations - violations.length} more`] : [];
  return [`${verdict}: ${traffic}`, ...reasons, ...violations.map(describeViolation), ...more].join('\n');
}
