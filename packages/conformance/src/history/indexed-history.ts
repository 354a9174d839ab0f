import type { History } from './recorder.ts';
import {
  type BookmarkSeen,
  type CallRecord,
  type GetOperation,
  type HistoryReleased,
  isWrite,
  type ListOperation,
  type Mark,
  type SeenObject,
  type WatchClosed,
  type WatchEventSeen,
  type WatchFinished,
  type WatchOpened,
  type WriteOperation,
} from './records.ts';

export type CallOf<O> = CallRecord & { readonly op: O };

/** One connection of a watch with all its events. */
export interface Session {
  readonly opened: WatchOpened;
  readonly steps: (WatchEventSeen | BookmarkSeen)[];
  closed?: WatchClosed;
}

/** The records of a history by type. */
export interface IndexedHistory {
  readonly objects: ReadonlyMap<number, SeenObject>;
  readonly writes: readonly CallOf<WriteOperation>[];
  readonly gets: readonly CallOf<GetOperation>[];
  /** Pages by list, in the order of their requests. */
  readonly lists: readonly (readonly CallOf<ListOperation>[])[];
  readonly sessions: readonly Session[];
  readonly finished: readonly WatchFinished[];
  /** Requested compactions, in the order of time. */
  readonly releases: readonly HistoryReleased[];
  readonly marks: readonly Mark[];
}

export function indexHistory(history: History): IndexedHistory {
  const objects = new Map<number, SeenObject>();
  const writes: CallOf<WriteOperation>[] = [];
  const gets: CallOf<GetOperation>[] = [];
  const lists = new Map<number, CallOf<ListOperation>[]>();
  const sessions = new Map<number, Session>();
  const finished: WatchFinished[] = [];
  const releases: HistoryReleased[] = [];
  const marks: Mark[] = [];
  const sessionOf = (number: number): Session => {
    const session = sessions.get(number);
    if (session === undefined) throw new Error(`the history has no beginning of session ${number}`);
    return session;
  };
  for (const record of history.records) {
    switch (record.t) {
      case 'object':
        objects.set(record.id, record.object);
        break;
      case 'call': {
        const { op } = record;
        if (isWrite(op)) writes.push({ ...record, op });
        else if (op.do === 'get') gets.push({ ...record, op });
        else lists.set(op.list, [...(lists.get(op.list) ?? []), { ...record, op }]);
        break;
      }
      case 'open':
        sessions.set(record.session, { opened: record, steps: [] });
        break;
      case 'event':
      case 'bookmark':
        sessionOf(record.session).steps.push(record);
        break;
      case 'close':
        sessionOf(record.session).closed = record;
        break;
      case 'finish':
        finished.push(record);
        break;
      case 'release':
        releases.push(record);
        break;
      case 'mark':
        marks.push(record);
        break;
    }
  }
  for (const pages of lists.values()) pages.sort((a, b) => a.op.page - b.op.page);
  return {
    objects,
    writes,
    gets,
    lists: [...lists.values()],
    sessions: [...sessions.values()],
    finished,
    releases,
    marks,
  };
}
