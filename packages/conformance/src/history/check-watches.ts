import type { IndexedHistory, Session } from './indexed-history.ts';
import { findInitialState } from './initial-state.ts';
import type { SeenObject, WatchFinished } from './records.ts';
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

/** How far a session got. */
interface Progress {
  /** Everything up to here was delivered; undefined when the session broke a rule or never got a state. */
  readonly position: number | undefined;
  /** The client knows it: a session that only brought the present state does not say of which revision it was. */
  readonly told: boolean;
}

/** Each session must be filter(history, (start, last]) exactly, and the sessions of one watch must join without a gap. */
export function checkWatches(history: IndexedHistory, versions: Versions, bounds: TimeBounds, findings: Findings): void {
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

function checkSession(session: Session, context: Context): Progress {
  const { opened, steps } = session;
  const { logs, bounds, versions, objects, findings } = context;
  const log = logs.of(opened.selection);
  let step = 0;
  let initialSteps = 0;
  let position: number;
  if ('after' in opened.from) position = opened.from.after;
  else {
    const floor = opened.from.state === 'fresh' ? bounds.floor(opened.at) : 0;
    const ceiling = bounds.ceiling(steps.at(-1)?.at ?? opened.at);
    const initial = findInitialState({ session, objects, versions, log, floor, ceiling });
    if (initial === 'incomplete') return nowhere;
    if (initial === undefined) {
      findings.add(
        'I6',
        `the first events of a watch are no state that was current from revision ${floor} on`,
        opened,
        ...steps.slice(0, 20),
      );
      return nowhere;
    }
    position = initial.revision;
    step = initial.steps;
    initialSteps = step;
  }
  let due = firstAfter(log, position);
  for (; step < steps.length; step++) {
    const seen = steps[step];
    if (seen === undefined) break;
    if (seen.t === 'bookmark') {
      const next = log[due];
      if (next !== undefined && next.revision <= seen.revision) {
        findings.add(
          'I7',
          `a bookmark of ${seen.revision} came before the event of ${next.revision}`,
          opened,
          seen,
          next.version.source,
        );
        return nowhere;
      }
      if (seen.revision < position) {
        findings.add('I7', `a bookmark of ${seen.revision} came after everything up to ${position}`, opened, seen);
        return nowhere;
      }
      if (seen.revision > bounds.ceiling(seen.at)) {
        findings.add('I7', `a bookmark of ${seen.revision} came before that revision was begun`, opened, seen);
        return nowhere;
      }
      position = seen.revision;
      continue;
    }
    const object = objects.get(seen.object);
    const wanted = log[due];
    const problem = object === undefined ? 'shows nothing' : difference(seen.type, object, wanted, position);
    if (problem !== undefined) {
      findings.add('I6', `an event ${problem}`, opened, seen, object, wanted?.version.source, wanted?.version.object);
      return nowhere;
    }
    position = object?.revision ?? position;
    due += 1;
  }
  return { position, told: 'after' in opened.from || step > initialSteps || steps[step - 1]?.t === 'bookmark' };
}

function difference(type: string, object: SeenObject, wanted: DueEvent | undefined, position: number): string | undefined {
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
