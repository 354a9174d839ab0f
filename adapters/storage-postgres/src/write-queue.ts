import { StorageError, StorageErrorCode } from '@keelson/core';
import { addAbortListener, type Clock, removeAbortListener } from '@keelson/core/runtime';
import { type Revision, throwIfAborted, type WriteOp, type WriteResult } from '@keelson/core/storage-adapter';

const batchWrites = 256;
const batchBytes = 1024 * 1024;
/** Number of waiting writes that are examined for keys that are not in the batch yet. */
const lookAhead = 2048;
/** Writes beyond this bound are refused, because the database cannot keep up. */
const maxWaiting = 50_000;
const maxWaitingBytes = 256 * 1024 * 1024;

export interface WriteOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

/** An accepted write, which is settled once. */
export class PendingWrite {
  readonly op: WriteOp;
  readonly bytes: number;
  /** Number of times that the write was returned to the queue without effect. */
  returns = 0;
  /** Sent in a separate batch, because a batch that contained it was refused as a whole. */
  alone = false;
  #sent = false;
  #settle:
    | { readonly resolve: (result: WriteResult) => void; readonly reject: (error: StorageError) => void }
    | undefined;
  readonly answer: Promise<WriteResult>;
  readonly #release: (() => void)[] = [];

  constructor(op: WriteOp, options: WriteOptions, clock: Clock) {
    this.op = op;
    this.bytes = op.key.length + (op.op === 'put' ? op.value.byteLength : 0);
    this.answer = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    const { signal, timeoutMs } = options;
    if (signal !== undefined) {
      const abort = () => this.#abandon('the call was aborted', signal.reason);
      addAbortListener(signal, abort);
      this.#release.push(() => removeAbortListener(signal, abort));
    }
    if (timeoutMs !== undefined) {
      this.#release.push(clock.after(timeoutMs, () => this.#abandon(`no answer within ${timeoutMs} ms`, undefined)));
    }
  }

  get settled(): boolean {
    return this.#settle === undefined;
  }

  /** Whether the write was sent; an abort then makes its outcome unknown. */
  set sent(sent: boolean) {
    this.#sent = sent;
  }

  resolve(result: WriteResult): void {
    this.#finish()?.resolve(result);
  }

  reject(error: StorageError): void {
    this.#finish()?.reject(error);
  }

  #abandon(why: string, cause: unknown): void {
    const { key } = this.op;
    const { OutcomeUnknown, Timeout } = StorageErrorCode;
    if (this.#sent) this.reject(new StorageError(OutcomeUnknown, `${why} while the write was running`, { key, cause }));
    else this.reject(new StorageError(Timeout, `${why}, the write was not sent`, { key, cause }));
  }

  #finish() {
    const settle = this.#settle;
    this.#settle = undefined;
    for (const release of this.#release) release();
    return settle;
  }
}

/**
 * The waiting writes, in order. A batch contains at most one write per key; the next write of a key waits for the next
 * batch.
 */
export class WriteQueue {
  #waiting: PendingWrite[] = [];
  #bytes = 0;

  get empty(): boolean {
    return this.#waiting.length === 0;
  }

  /** @throws StorageError `Timeout` when the signal is aborted already, `Unavailable` when too many writes wait. */
  push(op: WriteOp, options: WriteOptions, clock: Clock): PendingWrite {
    throwIfAborted(options.signal);
    if (this.#waiting.length >= maxWaiting || this.#bytes >= maxWaitingBytes) {
      throw new StorageError(StorageErrorCode.Unavailable, 'too many writes are waiting for the database');
    }
    const write = new PendingWrite(op, options, clock);
    this.#waiting.push(write);
    this.#bytes += write.bytes;
    return write;
  }

  /** Returns writes that certainly had no effect to the front of the queue. */
  giveBack(writes: readonly PendingWrite[]): void {
    const open = writes.filter((write) => !write.settled);
    for (const write of open) {
      write.sent = false;
      this.#bytes += write.bytes;
    }
    this.#waiting = [...open, ...this.#waiting];
  }

  /** Takes the next batch; empty when the callers of all waiting writes have cancelled them. */
  take(): PendingWrite[] {
    const batch: PendingWrite[] = [];
    const skipped: PendingWrite[] = [];
    const keys = new Set<string>();
    let bytes = 0;
    let i = 0;
    for (; i < this.#waiting.length && i < lookAhead && batch.length < batchWrites; i++) {
      const write = this.#waiting[i];
      if (write === undefined) break;
      if (write.settled) {
        this.#bytes -= write.bytes;
        continue;
      }
      if (batch.length > 0 && (write.alone || bytes + write.bytes > batchBytes)) break;
      if (keys.has(write.op.key)) {
        skipped.push(write);
        continue;
      }
      keys.add(write.op.key);
      batch.push(write);
      bytes += write.bytes;
      if (write.alone) {
        i++;
        break;
      }
    }
    this.#waiting = skipped.length === 0 ? this.#waiting.slice(i) : [...skipped, ...this.#waiting.slice(i)];
    this.#bytes -= bytes;
    for (const write of batch) write.sent = true;
    return batch;
  }

  /** Rejects all waiting writes. */
  fail(error: StorageError): void {
    const writes = this.#waiting;
    this.#waiting = [];
    this.#bytes = 0;
    for (const write of writes) write.reject(error);
  }
}

/** A write found in the log after its answer was lost. */
export interface FoundWrite {
  readonly revision: Revision;
  readonly createRevision: Revision;
}
