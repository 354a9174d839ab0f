import type { CallRecord, HistoryRecord, SeenObject, WatchClosed, WatchOpened } from './records.ts';

/** Options of a recorder. */
export interface RecorderOptions {
  /** Monotonic milliseconds. Default `performance.now`. */
  readonly now?: () => number;
  /** Records kept in memory; further records are dropped and the history is marked as truncated. Default 2 000 000. */
  readonly maxRecords?: number;
  /** Called for each record, for example to write it to a file during the run. */
  readonly onRecord?: (record: HistoryRecord) => void;
}

/** The recorded history. */
export interface History {
  readonly records: readonly HistoryRecord[];
  /** True when records were dropped, so that nothing can be proved. */
  readonly truncated: boolean;
}

type Distributive<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;

/** Collects the history of a run. All clients of a run share one recorder, so that all times come from one clock. */
export class HistoryRecorder implements History {
  readonly records: HistoryRecord[] = [];
  truncated = false;
  readonly now: () => number;
  readonly #maxRecords: number;
  readonly #onRecord: ((record: HistoryRecord) => void) | undefined;
  readonly #objects = new Map<string, number>();
  readonly #states: SeenObject[] = [];
  #calls = 0;
  #sessions = 0;
  #lists = 0;

  constructor(options: RecorderOptions = {}) {
    this.now = options.now ?? (() => performance.now());
    this.#maxRecords = options.maxRecords ?? 2_000_000;
    this.#onRecord = options.onRecord;
  }

  /** Returns the id of a state of an object; equal states have the same id. */
  object(object: SeenObject): number {
    const identity = `${object.revision} ${object.digest} ${object.key}`;
    let id = this.#objects.get(identity);
    if (id === undefined) {
      id = this.#objects.size;
      this.#objects.set(identity, id);
      this.#states.push(object);
      this.#add({ t: 'object', id, object });
    }
    return id;
  }

  /** Returns the state with an id. */
  objectOf(id: number): SeenObject | undefined {
    return this.#states[id];
  }

  call(call: Omit<CallRecord, 't' | 'id' | 'end'>): void {
    this.#add({ t: 'call', id: this.#calls++, end: this.now(), ...call });
  }

  /** Returns a new id for the pages of one list. */
  nextList(): number {
    return this.#lists++;
  }

  /**
   * Records the beginning of a watch session and returns the id of the session. Must be called before the request is
   * sent.
   */
  open(session: Omit<WatchOpened, 't' | 'session' | 'at'>): number {
    const number = this.#sessions++;
    this.#add({ t: 'open', session: number, at: this.now(), ...session });
    return number;
  }

  event(session: number, type: 'ADDED' | 'MODIFIED' | 'DELETED', object: SeenObject): void {
    const id = this.object(object);
    this.#add({ t: 'event', session, at: this.now(), type, object: id });
  }

  bookmark(session: number, revision: number, initialEnd = false): void {
    this.#add({ t: 'bookmark', session, at: this.now(), revision, ...(initialEnd ? { initialEnd } : {}) });
  }

  close(session: number, why: WatchClosed['why'], detail?: string): void {
    this.#add({ t: 'close', session, at: this.now(), why, ...(detail === undefined ? {} : { detail }) });
  }

  finish(watch: string, revision: number): void {
    this.#add({ t: 'finish', watch, at: this.now(), revision });
  }

  /** Records that history before `revision` may be compacted. Must be called before the compaction is requested. */
  release(revision: number): void {
    this.#add({ t: 'release', at: this.now(), revision });
  }

  mark(text: string): void {
    this.#add({ t: 'mark', at: this.now(), text });
  }

  #add(record: Distributive<HistoryRecord, never>): void {
    if (this.records.length >= this.#maxRecords) {
      this.truncated = true;
      return;
    }
    this.records.push(record);
    this.#onRecord?.(record);
  }
}
