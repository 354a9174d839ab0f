import { modelList } from './check-lists.ts';
import type { Session } from './indexed-history.ts';
import type { BookmarkSeen, SeenObject, WatchEventSeen } from './records.ts';
import { type DueEvent, firstAfter } from './selection-log.ts';
import type { Versions } from './versions.ts';

/** A possible end of the initial events of a watch. */
export interface InitialState {
  readonly revision: number;
  /** Number of initial events. */
  readonly events: number;
  /** Number of steps: the initial events, and the bookmark that ends them if there is one. */
  readonly steps: number;
}

/**
 * Maximum number of compared states; more are possible only when no event follows the initial ones, which then remain
 * unchecked.
 */
const maxTries = 1000;

interface Situation {
  readonly session: Session;
  readonly objects: ReadonlyMap<number, SeenObject>;
  readonly versions: Versions;
  readonly log: readonly DueEvent[];
  /** Possible revisions of the initial state. */
  readonly floor: number;
  readonly ceiling: number;
  /** Candidates with fewer events were tried and failed. */
  readonly atLeast: number;
}

/**
 * Determines the revision of the initial state of a watch without a revision. The stream does not mark the end of that
 * state, so that every candidate is tried: a number of ADDED events in the order of lists that equal the model at a
 * revision before the next event. The first candidate may be wrong: a first ADDED event may be the only object of the
 * initial state, or a change after an empty initial state. A caller that reaches a contradiction requests the next
 * candidate.
 *
 * @returns undefined when there is no candidate; a session that ended before the state was complete is not checked
 */
export function findInitialState(situation: Situation): InitialState | 'incomplete' | undefined {
  const { session, objects, versions, log, floor, ceiling, atLeast } = situation;
  const { steps, opened } = session;
  const initial: SeenObject[] = [];
  let greatest = floor;
  let tries = 0;
  for (let count = 0; ; count++) {
    const next = steps[count];
    const found = count < atLeast ? undefined : readAs(initial, greatest, next);
    if (found !== undefined) {
      return { revision: found, events: count, steps: next?.t === 'bookmark' && next.initialEnd ? count + 1 : count };
    }
    const object = next?.t === 'event' && next.type === 'ADDED' ? objects.get(next.object) : undefined;
    const previous = initial.at(-1);
    if (next === undefined) return session.closed?.why === 'ended' && tries <= maxTries ? undefined : 'incomplete';
    if (object === undefined || (previous !== undefined && object.key <= previous.key)) return undefined;
    initial.push(object);
    greatest = Math.max(greatest, object.revision);
  }

  function readAs(
    state: readonly SeenObject[],
    from: number,
    next: WatchEventSeen | BookmarkSeen | undefined,
  ): number | undefined {
    const is = (revision: number) => same(modelList(versions, opened.selection, revision), state);
    if (next !== undefined) {
      // If no change is missing, the initial state is the state at the revision before the first event after it.
      const to = next.t === 'bookmark' ? next.revision : (objects.get(next.object)?.revision ?? 0) - 1;
      return to >= from && is(to) ? to : undefined;
    }
    // Between two events of the log the state does not change.
    const candidates = [from];
    for (let index = firstAfter(log, from); index < log.length; index++) {
      const { revision } = log[index] as DueEvent;
      if (revision <= ceiling) candidates.push(revision);
    }
    tries = candidates.length;
    return candidates.slice(0, maxTries).find(is);
  }
}

function same(a: readonly SeenObject[], b: readonly SeenObject[]): boolean {
  return (
    a.length === b.length &&
    a.every((object, index) => object.key === b[index]?.key && object.revision === b[index]?.revision)
  );
}
