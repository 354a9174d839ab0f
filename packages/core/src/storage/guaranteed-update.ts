import { StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import { addAbortListener, removeAbortListener } from '../meta/abort-listeners.ts';
import type { Clock } from '../runtime/clock.ts';
import type { UpdateDecision, UpdateOutcome } from './resource-storage.ts';
import type { ObjectSource } from './storage-memory.ts';
import type { Entry, Key, Revision, Store } from './store.ts';
import { throwIfAborted } from './store-helpers.ts';
import { metadataOffset, StoredObject } from './stored-object.ts';

/** Notified of every acknowledged write before the caller of the write receives its result. */
export interface WriteObserver {
  /** The object of an acknowledged write, when the caller has already created it. */
  known(key: Key, revision: Revision): StoredObject | undefined;
  written(object: StoredObject): void;
  deleted(key: Key, revision: Revision): void;
}

/** A write of one object. */
export interface WriteRequest {
  readonly store: Store;
  readonly source: ObjectSource;
  readonly key: Key;
  readonly observer?: WriteObserver | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface UpdateRequest extends WriteRequest {
  readonly decide: (current: StoredObject | undefined) => UpdateDecision | Promise<UpdateDecision>;
  /**
   * A state that may be stale, for the first attempt; absent: it is read. That an object is missing is always verified
   * by a read.
   */
  readonly suggestion?: StoredObject | undefined;
}

/** Creates the key; fails with `AlreadyExists`. */
export function createStored(request: WriteRequest, json: Buffer, ttlMs: number | undefined): Promise<StoredObject> {
  return new UpdateAttempt(request).put(json, 0, ttlMs).then((object) => {
    if (object instanceof StoredObject) return object;
    const { key } = request;
    throw new StorageError(StorageErrorCode.AlreadyExists, `${key} already exists`, {
      key,
      ...(object.current === undefined ? {} : { revision: object.current.modRevision }),
    });
  });
}

/**
 * Reads, decides and writes with compare-and-set until no concurrent write intervenes. An error or an unchanged object
 * counts only when a fresh read has shown the same revision: see docs/reference/api-rules.md#believing-a-stale-read.
 */
export async function guaranteedUpdate(request: UpdateRequest): Promise<UpdateOutcome> {
  const { key, decide, signal } = request;
  const attempt = new UpdateAttempt(request);
  let current = request.suggestion;
  let fresh = false;
  const refresh = async () => {
    const known = current?.revision;
    current = await attempt.read();
    const same = fresh || (known !== undefined && known === current?.revision);
    fresh = true;
    return same;
  };
  if (current === undefined) await refresh();

  for (;;) {
    throwIfAborted(signal);
    let decision: UpdateDecision;
    try {
      decision = await decide(current);
    } catch (error) {
      if (fresh || (await refresh())) throw error;
      continue;
    }
    if (decision.do === 'keep' || (decision.do === 'write' && current?.holds(decision.json))) {
      if (!fresh && !(await refresh())) continue;
      return { outcome: 'unchanged', object: existing(key, current) };
    }
    const result = await (decision.do === 'write'
      ? attempt.write(decision, current)
      : attempt.delete(decision, existing(key, current)));
    if (!('lost' in result)) return result;
    current = result.lost;
    fresh = true;
  }
}

function existing(key: Key, current: StoredObject | undefined): StoredObject {
  if (current !== undefined) return current;
  throw new StorageError(StorageErrorCode.NotFound, `${key} does not exist`, { key });
}

/** The state after a concurrent write of another caller. */
interface Lost {
  readonly lost: StoredObject | undefined;
}

class UpdateAttempt {
  readonly #store: Store;
  readonly #source: ObjectSource;
  readonly #key: Key;
  readonly #observer: WriteObserver | undefined;
  readonly #options: { readonly signal?: AbortSignal };

  constructor({ store, source, key, observer, signal }: WriteRequest) {
    this.#store = store;
    this.#source = source;
    this.#key = key;
    this.#observer = observer;
    this.#options = signal === undefined ? {} : { signal };
  }

  async read(): Promise<StoredObject | undefined> {
    return this.#objectOf((await this.#store.get(this.#key, this.#options)).entry);
  }

  /** The new object, or the entry that prevented the write. */
  async put(
    json: Buffer,
    expect: Revision,
    ttlMs: number | undefined,
  ): Promise<StoredObject | { readonly current: Entry | undefined }> {
    const key = this.#key;
    throwIfAborted(this.#options.signal);
    if (metadataOffset(json) === -1) {
      throw new StorageError(StorageErrorCode.Corrupt, `the object to be stored as ${key} has no metadata`, { key });
    }
    const ttl = ttlMs === undefined ? {} : { ttlMs };
    const result = await this.#store.write({ op: 'put', key, value: json, expect, ...ttl }, this.#options);
    if (!result.ok) return result;
    const known = this.#observer?.known(key, result.revision);
    if (known !== undefined) return known;
    const object = StoredObject.fromValue(key, result.revision, result.createRevision, json, this.#source);
    this.#observer?.written(object);
    return object;
  }

  async write(
    decision: UpdateDecision & { readonly do: 'write' },
    current: StoredObject | undefined,
  ): Promise<UpdateOutcome | Lost> {
    const object = await this.put(decision.json, current?.revision ?? 0, decision.ttlMs);
    if (!(object instanceof StoredObject)) return { lost: this.#objectOf(object.current) };
    return { outcome: current === undefined ? 'created' : 'updated', object };
  }

  /**
   * A last state that differs is written first, so that every watcher of every process sees it in the DELETED event.
   */
  async delete(
    decision: UpdateDecision & { readonly do: 'delete' },
    current: StoredObject,
  ): Promise<UpdateOutcome | Lost> {
    let last = current;
    if (decision.json !== undefined && !current.holds(decision.json)) {
      const object = await this.put(decision.json, current.revision, undefined);
      if (!(object instanceof StoredObject)) return { lost: this.#objectOf(object.current) };
      last = object;
    }
    const result = await this.#store.write({ op: 'delete', key: this.#key, expect: last.revision }, this.#options);
    if (!result.ok) return { lost: this.#objectOf(result.current) };
    this.#observer?.deleted(this.#key, result.revision);
    return { outcome: 'deleted', object: last.restamped(result.revision) };
  }

  #objectOf(entry: Entry | undefined): StoredObject | undefined {
    return entry === undefined ? undefined : StoredObject.fromEntry(entry, this.#source);
  }
}

/** Maximum time that an update waits for the previous update of the same key. */
const patienceMs = 1_000;

/**
 * Runs updates of one key one after the other in the order of their arrival, because of concurrent updates all but one
 * must be repeated. This is an optimisation and not a lock: compare-and-set decides what is written. The wait is
 * bounded, because an update may never end, such as one whose admission plugin updates the same object.
 */
export class KeyTurns<T> {
  readonly #clock: Clock;
  /** The latest work on each key that has not ended. */
  readonly #last = new Map<Key, Promise<T>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Runs the work at once, or after the work in progress on the key, whose result it then receives if that succeeded.
   */
  run(key: Key, signal: AbortSignal | undefined, work: (before: T | undefined) => Promise<T>): Promise<T> {
    const last = this.#last.get(key);
    const running = last === undefined ? work(undefined) : this.#ended(last, signal).then(work);
    this.#last.set(key, running);
    const ended = () => {
      if (this.#last.get(key) === running) this.#last.delete(key);
    };
    running.then(ended, ended);
    return running;
  }

  /**
   * Resolves when the work has ended, with its result if it had one; when time is up; or when the signal is aborted.
   */
  #ended(work: Promise<T>, signal: AbortSignal | undefined): Promise<T | undefined> {
    return new Promise((resolve) => {
      const finish = (result?: T) => {
        cancel();
        removeAbortListener(signal, giveUp);
        resolve(result);
      };
      const giveUp = () => finish();
      const cancel = this.#clock.after(patienceMs, giveUp);
      addAbortListener(signal, giveUp);
      if (signal?.aborted) giveUp();
      work.then(finish, giveUp);
    });
  }
}
