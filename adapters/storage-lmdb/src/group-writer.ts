import { isStorageError, StorageError, StorageErrorCode } from '@keelson/core';
import type { Clock } from '@keelson/core/runtime';
import type { Entry, Key, Revision, WriteOp, WriteResult } from '@keelson/core/storage-adapter';
import type { DiskReserve } from './disk-reserve.ts';
import type { Environment } from './environment.ts';
import { encodeCommit, encodeRow, expiryKey, historyKey, type Row, revisionKey } from './records.ts';
import { type WriteOptions, WriteSettlement } from './write-settlement.ts';

/** Bounds of one commit; further writes wait for the next. */
const commitWrites = 1024;
const commitBytes = 8 * 1024 * 1024;
/** Longest time for which a commit waits for more writes. */
const gatherMs = 10;
/** Turns of the event loop without a write after which a commit starts although the commit before it was larger. */
const quietTurns = 4;
/** Writes beyond these bounds are refused, because the disk cannot keep up. */
const maxWaiting = 100_000;
const maxWaitingBytes = 256 * 1024 * 1024;

/** A write that has its revision and whose commit has not finished. */
export interface PendingWrite {
  readonly type: 'create' | 'update' | 'delete';
  readonly key: Key;
  readonly keyBytes: Buffer;
  readonly revision: Revision;
  readonly before: Row | undefined;
  readonly after: Row | undefined;
  /** The caller of the write, and the callers whose writes were refused because of it. */
  readonly waiting: Waiting[];
}

/** A caller that waits for a write, and its result once the write is on disk. */
interface Waiting {
  readonly settlement: WriteSettlement<WriteResult>;
  readonly result: WriteResult;
}

/** A key with pending writes: the newest, and the state that is on disk. */
interface Unsettled {
  last: PendingWrite;
  durable: Row | undefined;
}

export interface WriterEvents {
  /** Called with writes, in order, that are on disk, before their callers receive the results. */
  committed(writes: readonly PendingWrite[]): void;
}

/**
 * Orders all writes. A write is decided and gets its revision immediately, based on the rows on disk and on the pending
 * writes. Writes that arrive while a commit runs, or shortly after it, share the next commit.
 */
export class GroupWriter {
  readonly #env: Environment;
  readonly #events: WriterEvents;
  readonly #reserve: DiskReserve | undefined;
  readonly #clock: Clock;
  readonly #unsettled = new Map<Key, Unsettled>();
  #waiting: PendingWrite[] = [];
  #waitingBytes = 0;
  /** Number of writes of the last commit. */
  #lastCount = 0;
  #assigned: Revision;
  #head: Revision;
  #exposed: Revision;
  #lastDelete: Revision;
  #running: Promise<void> | undefined;
  #failure: StorageError | undefined;

  constructor(env: Environment, events: WriterEvents, clock: Clock, reserve: DiskReserve | undefined) {
    this.#env = env;
    this.#reserve = reserve;
    this.#events = events;
    this.#clock = clock;
    this.#head = env.head();
    this.#assigned = this.#head;
    this.#exposed = this.#head;
    this.#lastDelete = this.#head;
  }

  /** The newest acknowledged revision. */
  get head(): Revision {
    return this.#head;
  }

  /** The newest revision that a snapshot of the database may contain. */
  get exposed(): Revision {
    return this.#exposed;
  }

  /** Upper bound of the revisions of deletes that a snapshot of the database may contain. */
  get lastDelete(): Revision {
    return this.#lastDelete;
  }

  /** The entry as of {@link head}. */
  get(key: Key): Entry | undefined {
    const unsettled = this.#unsettled.get(key);
    return (unsettled === undefined ? this.#read(key, Buffer.from(key)) : unsettled.durable)?.entry;
  }

  /** @throws StorageError `Unavailable` when nothing was written, `OutcomeUnknown` when that cannot be determined */
  write(op: WriteOp, options: WriteOptions, expiresAt?: number): Promise<WriteResult> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (this.#waiting.length >= maxWaiting || this.#waitingBytes >= maxWaitingBytes) {
      return Promise.reject(new StorageError(StorageErrorCode.Unavailable, 'too many writes are waiting for the disk'));
    }
    const unsettled = this.#unsettled.get(op.key);
    const keyBytes = Buffer.from(op.key);
    const before = unsettled === undefined ? this.#read(op.key, keyBytes) : unsettled.last.after;
    if ((before?.entry.modRevision ?? 0) !== op.expect || (op.op === 'delete' && before === undefined)) {
      return this.#refuse(before?.entry, unsettled?.last, options);
    }
    if (this.#reserve?.full && op.op === 'put' && !this.#reserve.accepts(growthOf(op.value, before))) {
      return Promise.reject(
        new StorageError(StorageErrorCode.Unavailable, 'the disk is full: only deletes and small updates are accepted'),
      );
    }
    const revision = ++this.#assigned;
    const createRevision = before?.entry.createRevision ?? revision;
    const after = op.op === 'delete' ? undefined : encodeRow(op.key, op.value, createRevision, revision, expiresAt);
    const type = after === undefined ? 'delete' : before === undefined ? 'create' : 'update';
    const settlement = new WriteSettlement<WriteResult>(this.#clock, options);
    const waiting = [{ settlement, result: { ok: true, revision, createRevision } as const }];
    const pending: PendingWrite = { type, key: op.key, keyBytes, revision, before, after, waiting };
    if (unsettled === undefined) this.#unsettled.set(op.key, { last: pending, durable: before });
    else unsettled.last = pending;
    this.#waiting.push(pending);
    this.#waitingBytes += after?.bytes.byteLength ?? 0;
    this.#start();
    return settlement.answer;
  }

  /** Resolves when no write is pending. */
  async drained(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  /** A refusal is reported when the write that caused it is on disk. */
  #refuse(current: Entry | undefined, cause: PendingWrite | undefined, options: WriteOptions): Promise<WriteResult> {
    if (cause === undefined) return Promise.resolve({ ok: false, current, revision: this.#head });
    const settlement = new WriteSettlement<WriteResult>(this.#clock, options);
    cause.waiting.push({ settlement, result: { ok: false, current, revision: cause.revision } });
    return settlement.answer;
  }

  #read(key: Key, keyBytes: Buffer): Row | undefined {
    const bytes = this.#env.obj.getBinary(keyBytes);
    return bytes === undefined ? undefined : this.#env.decode(key, bytes);
  }

  #start(): void {
    if (this.#running !== undefined) return;
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
      // A write may have arrived since the queue was checked last.
      if (this.#waiting.length > 0) this.#start();
    });
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      await this.#gather();
      const writes = this.#take();
      const last = writes.at(-1);
      if (last === undefined) return;
      this.#exposed = last.revision;
      for (const write of writes) if (write.type === 'delete') this.#lastDelete = write.revision;
      try {
        await this.#env.commit(() => this.#store(writes));
      } catch (error) {
        this.#fail(writes, error);
        continue;
      }
      this.#head = last.revision;
      for (const write of writes) this.#forget(write);
      this.#events.committed(writes);
      for (const write of writes) settle(write);
    }
  }

  /**
   * Waits while further writes arrive: a commit costs about as much as four requests, whatever its size. While there
   * are fewer writes than in the commit before, a few turns without a write are tolerated, because callers that have
   * just received a result need them for their next write.
   */
  async #gather(): Promise<void> {
    const until = this.#clock.monotonic() + gatherMs;
    let count = this.#waiting.length;
    for (let quiet = 0; quiet < (count < this.#lastCount ? quietTurns : 1); ) {
      await new Promise((resolve) => setImmediate(resolve));
      quiet = this.#waiting.length > count ? 0 : quiet + 1;
      count = this.#waiting.length;
      if (count >= commitWrites || this.#clock.monotonic() >= until) break;
    }
    this.#lastCount = count;
  }

  #take(): PendingWrite[] {
    let bytes = 0;
    let count = 0;
    for (const write of this.#waiting) {
      if (count === commitWrites || bytes >= commitBytes) break;
      bytes += write.after?.bytes.byteLength ?? 0;
      count++;
    }
    const writes = count === this.#waiting.length ? this.#waiting : this.#waiting.slice(0, count);
    this.#waiting = count === this.#waiting.length ? [] : this.#waiting.slice(count);
    this.#waitingBytes -= bytes;
    return writes;
  }

  #store(writes: readonly PendingWrite[]): void {
    const { obj, hist, log, ttl } = this.#env;
    const first = writes[0];
    if (first === undefined) return;
    for (const { keyBytes, revision, before, after } of writes) {
      if (after === undefined) void obj.remove(keyBytes);
      else void obj.put(keyBytes, after.bytes);
      if (before !== undefined) void hist.put(historyKey(keyBytes, revision), before.bytes);
      if (before?.entry.expiresAt !== undefined)
        void ttl.remove(expiryKey(before.entry.expiresAt, before.entry.modRevision));
      if (after?.entry.expiresAt !== undefined) void ttl.put(expiryKey(after.entry.expiresAt, revision), keyBytes);
    }
    const changes = writes.map(({ type, keyBytes }) => ({ type, key: keyBytes }));
    void log.put(revisionKey(first.revision), encodeCommit(changes));
  }

  /** Removes a write that is on disk from the pending writes of its key. */
  #forget(write: PendingWrite): void {
    const unsettled = this.#unsettled.get(write.key);
    if (unsettled === undefined) return;
    if (unsettled.last === write) this.#unsettled.delete(write.key);
    else unsettled.durable = write.after;
  }

  /**
   * Handles a failed commit. Writes that were decided on top of it fail too. When the commit is on disk nevertheless,
   * the driver failed in its last step, and no write is accepted until the store is opened again.
   */
  #fail(writes: readonly PendingWrite[], cause: unknown): void {
    const text = cause instanceof Error ? cause.message : String(cause);
    const fenced = isStorageError(cause) ? cause : undefined;
    const unavailable =
      fenced ?? new StorageError(StorageErrorCode.Unavailable, `the store cannot be written: ${text}`, { cause });
    let failure = unavailable;
    if (fenced !== undefined) this.#failure = fenced;
    else if (this.#onDisk() !== this.#head) {
      failure = new StorageError(StorageErrorCode.OutcomeUnknown, `a commit failed at its end: ${text}`, { cause });
      this.#failure = unavailable;
    }
    const dropped = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#unsettled.clear();
    this.#assigned = this.#head;
    this.#exposed = this.#head;
    const full = this.#failure === undefined && this.#reserve?.explains(cause) === true;
    const again = full && this.#reserve?.release() === true;
    for (const write of writes) if (!again || !this.#repeat(write, unavailable)) settle(write, failure);
    for (const write of dropped) if (!again || !this.#repeat(write, unavailable)) settle(write, unavailable);
  }

  /** Repeats a write that failed on a full disk and is small enough for the space of the released reserve. */
  #repeat(write: PendingWrite, unavailable: StorageError): boolean {
    const { key, before, after } = write;
    const [own, ...refused] = write.waiting;
    const growth = after === undefined ? 0 : growthOf(after.entry.value, before);
    if (own === undefined || this.#reserve?.accepts(growth) !== true) return false;
    const expect = before?.entry.modRevision ?? 0;
    const op: WriteOp =
      after === undefined ? { op: 'delete', key, expect } : { op: 'put', key, value: after.entry.value, expect };
    this.write(op, {}, after?.entry.expiresAt).then(
      // The state on which the write was decided may have been lost with the commit.
      (result) => (result.ok ? own.settlement.resolve(result) : own.settlement.reject(unavailable)),
      (error: unknown) => own.settlement.reject(error),
    );
    for (const { settlement } of refused) settlement.reject(unavailable);
    return true;
  }

  #onDisk(): Revision | undefined {
    try {
      return this.#env.head();
    } catch {
      return undefined;
    }
  }
}

/** Returns by how many bytes a put lengthens the value of a key; infinite for a new key. */
function growthOf(value: Uint8Array, before: Row | undefined): number {
  return before === undefined ? Number.POSITIVE_INFINITY : value.byteLength - before.entry.value.byteLength;
}

/** Reports to all callers that wait for a write that it is on disk, or why it is not. */
function settle({ waiting }: PendingWrite, error?: StorageError): void {
  for (const { settlement, result } of waiting) {
    if (error === undefined) settlement.resolve(result);
    else if (result.ok) settlement.reject(error);
    else
      settlement.reject(
        new StorageError(StorageErrorCode.Unavailable, 'the write before this one failed', { cause: error }),
      );
  }
}
