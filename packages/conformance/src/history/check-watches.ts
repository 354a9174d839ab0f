import type { IndexedHistory, Session } from './indexed-history.ts';
import { findInitialState } from './initial-state.ts';
import type { HistoryRecord, SeenObject, WatchFinished } from './records.ts';
import { type DueEvent, firstAfter, SelectionLogs } from './selection-log.ts';
import type { TimeBounds } from './time-bounds.ts';
import type { Versions } from './versions.ts';
import type { Findings } from './violation.ts';

interface Context {
  readonly objects: ReadonlyMap<number, SeenObject>;
  readonly versions: Versions;
  readonly logs: SelectionLogs;
  readonly bounds: TimeBounds;
  readonly findings: Findings;
}

/** The progress of a session. */
interface Progress {
  /** Revision up to which everything was delivered; undefined after a violation or without any state. */
  readonly position: number | undefined;
  /** Whether the client knows the revision: a session with only the initial state does not report its revision. */
  readonly told: boolean;
}

/**
 * Each session must deliver exactly filter(history, (start, last]): the events of its selection from its start to its
 * last revision. The sessions of one watch must join without a gap.
 */
export function checkWatches(
  history: IndexedHistory,
  versions: Versions,
  bounds: TimeBounds,
  findings: Findings,
): void {
  const context: Context = { objects: history.objects, versions, logs: new SelectionLogs(versions), bounds, findings };
  const positions = new Map<string, Progress & { readonly session: Session }>();
  for (const session of history.sessions) {
    const { opened } = session;
    const before = positions.get(opened.watch);
    if (opened.resumed && 'after' in opened.from && before?.told && opened.from.after !== before.position) {
      const text = `a watch went on after ${opened.from.after}, but had everything up to ${before.position}`;
      findings.add('I8', text, before.session.opened, opened);
    }
    positions.set(opened.watch, { session, ...checkSession(session, context) });
  }
  for (const finish of history.finished) checkFinish(finish, positions.get(finish.watch), context);
}

const nowhere: Progress = { position: undefined, told: false };

/** The violations of a session. */
interface Problem {
  readonly invariant: 'I6' | 'I7';
  readonly text: string;
  readonly evidence: readonly (HistoryRecord | SeenObject | undefined)[];
}

function checkSession(session: Session, context: Context): Progress {
  const { opened } = session;
  if ('after' in opened.from) {
    return settled(follow(session, context, { position: opened.from.after, step: 0, told: true }), context);
  }
  return checkFromState(session, opened.from.state, context);
}

/** Tries every possible end of the initial events; the session is correct when one of them is. */
function checkFromState(session: Session, state: 'any' | 'fresh', context: Context): Progress {
  const { opened, steps } = session;
  const { logs, bounds, versions, objects } = context;
  const floor = state === 'fresh' ? bounds.floor(opened.at) : 0;
  // A session without events may have had the state of any time until its end.
  const ceiling = bounds.ceiling(steps.at(-1)?.at ?? session.closed?.at ?? opened.at);
  let problem: Problem = {
    invariant: 'I6',
    text: `the first events of a watch are no state that was current from revision ${floor} on`,
    evidence: [opened, ...steps.slice(0, 20)],
  };
  for (let atLeast = 0; ; ) {
    const log = logs.of(opened.selection);
    const initial = findInitialState({ session, objects, versions, log, floor, ceiling, atLeast });
    if (initial === 'incomplete') return nowhere;
    if (initial === undefined) return settled(problem, context);
    const outcome = follow(session, context, { position: initial.revision, step: initial.steps, told: false });
    if (!('invariant' in outcome)) return outcome;
    problem = outcome;
    atLeast = initial.events + 1;
  }
}

function settled(outcome: Progress | Problem, { findings }: Context): Progress {
  if (!('invariant' in outcome)) return outcome;
  findings.add(outcome.invariant, outcome.text, ...outcome.evidence);
  return nowhere;
}

/** Compares the steps of a session from a position on with the expected events. */
function follow(
  { opened, steps }: Session,
  { logs, bounds, objects }: Context,
  from: { readonly position: number; readonly step: number; readonly told: boolean },
): Progress | Problem {
  const log = logs.of(opened.selection);
  let { position } = from;
  let due = firstAfter(log, position);
  for (const seen of steps.slice(from.step)) {
    if (seen.t === 'bookmark') {
      const wrong = bookmarkProblem(seen.revision, position, log[due], bounds.ceiling(seen.at));
      if (wrong !== undefined)
        return { invariant: 'I7', text: wrong, evidence: [opened, seen, log[due]?.version.source] };
      position = seen.revision;
      continue;
    }
    const object = objects.get(seen.object);
    const wanted = log[due];
    const problem = object === undefined ? 'shows nothing' : difference(seen.type, object, wanted, position);
    if (problem !== undefined) {
      return {
        invariant: 'I6',
        text: `an event ${problem}`,
        evidence: [opened, seen, object, wanted?.version.source, wanted?.version.object],
      };
    }
    position = object?.revision ?? position;
    due += 1;
  }
  return { position, told: from.told || steps.length > from.step || steps.at(-1)?.t === 'bookmark' };
}

function bookmarkProblem(
  revision: number,
  position: number,
  next: DueEvent | undefined,
  ceiling: number,
): string | undefined {
  if (next !== undefined && next.revision <= revision)
    return `a bookmark of ${revision} came before the event of ${next.revision}`;
  if (revision < position) return `a bookmark of ${revision} came after everything up to ${position}`;
  if (revision > ceiling) return `a bookmark of ${revision} came before that revision was begun`;
  return undefined;
}

function difference(
  type: string,
  object: SeenObject,
  wanted: DueEvent | undefined,
  position: number,
): string | undefined {
  const seen = `${type} of ${object.key} at ${object.revision}`;
  if (object.revision <= position) return `came again or too late: ${seen} after everything up to ${position}`;
  if (wanted === undefined || object.revision < wanted.revision) return `was not due: ${seen}`;
  const due = `${wanted.type} of ${wanted.key} at ${wanted.revision}`;
  if (object.revision > wanted.revision) return `is missing: ${due}; ${seen} came instead`;
  if (object.key !== wanted.key || type !== wanted.type) return `is wrong: ${seen}, must be ${due}`;
  if (object.digest !== wanted.digest) return `shows another state than it must: ${seen}`;
  return undefined;
}

function checkFinish(
  finish: WatchFinished,
  last: (Progress & { readonly session: Session }) | undefined,
  { logs, findings }: Context,
): void {
  if (last?.position === undefined) return;
  const log = logs.of(last.session.opened.selection);
  const next = log[firstAfter(log, last.position)];
  if (next === undefined || next.revision > finish.revision) return;
  findings.add(
    'I6',
    `a watch never showed ${next.type} of ${next.key} at ${next.revision}`,
    last.session.opened,
    finish,
    next.version.source,
  );
}
