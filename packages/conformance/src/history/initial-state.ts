import { modelList } from './check-lists.ts';
import type { Session } from './indexed-history.ts';
import type { BookmarkSeen, SeenObject, WatchEventSeen } from './records.ts';
import { type DueEvent, firstAfter } from './selection-log.ts';
import type { Versions } from './versions.ts';

/** Where the initial events of a watch end and the changes begin. */
export interface InitialState {
  readonly revision: number;
  /** Events that belong to it. */
  readonly events: number;
  /** Steps that belong to it: the events, and the bookmark that ends them if there is one. */
  readonly steps: number;
}

/**
 * States compared at most; more are possible only when nothing follows the initial events, which then stay unjudged.
 */
const maxTries = 1000;

interface Situation {
  readonly session: Session;
  readonly objects: ReadonlyMap<number, SeenObject>;
  readonly versions: Versions;
  readonly log: readonly DueEvent[];
  /** Revisions of which the initial state may be. */
  readonly floor: number;
  readonly ceiling: number;
  /** Readings with fewer events have been tried and led nowhere. */
  readonly atLeast: number;
}

/**
 * Finds out of which revision the state is that a watch without a revision began with. The stream does not say where
 * that state ends, so every reading is tried: some number of ADDED events in the order of lists, being exactly the
 * model at some revision that comes before the next event. The first such reading is not always the right one: with an
 * object that was the first of its selection, the state may have been empty before it as well. Who follows a reading
 * into a contradiction asks for the next one.
 *
 * @returns undefined when no reading is possible; a session that ended before the state was complete is not judged.
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
      // Nothing may be missing before the next step, so the state is also that of the revision just before it.
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
