import { StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import { addAbortListener, removeAbortListener } from '../meta/abort-listeners.ts';
import type { Revision } from './store.ts';
import { throwIfAborted } from './store-checks.ts';

interface Waiter {
  readonly revision: Revision;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** The pending calls of `advanceTo` of a watch stream. */
export class AdvanceWaiters {
  #waiters: Waiter[] = [];

  /** The revisions of the pending calls. */
  get revisions(): readonly Revision[] {
    return this.#waiters.map(({ revision }) => revision);
  }

  /**
   * Resolves when {@link reached} is called with the revision or a later one. Fails with `Timeout` on abort, or with
   * the error of {@link fail}.
   */
  wait(revision: Revision, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      throwIfAborted(signal);
      const abort = () => {
        this.#waiters = this.#waiters.filter((other) => other !== waiter);
        reject(new StorageError(StorageErrorCode.Timeout, 'the call was aborted', { cause: signal?.reason }));
      };
      const settled = () => removeAbortListener(signal, abort);
      const waiter: Waiter = {
        revision,
        resolve: () => {
          settled();
          resolve();
        },
        reject: (error) => {
          settled();
          reject(error);
        },
      };
      addAbortListener(signal, abort);
      this.#waiters.push(waiter);
    });
  }

  /** Resolves the calls up to this frontier. Free of cost while no call is pending. */
  reached(frontier: Revision): void {
    if (this.#waiters.length === 0) return;
    const ready = this.#waiters.filter(({ revision }) => revision <= frontier);
    if (ready.length === 0) return;
    this.#waiters = this.#waiters.filter(({ revision }) => revision > frontier);
    for (const waiter of ready) waiter.resolve();
  }

  /** Rejects all pending calls, because the stream has ended. */
  fail(error: StorageError): void {
    for (const waiter of this.#waiters.splice(0)) waiter.reject(error);
  }
}

/** What calls on an ended watch stream fail with. */
export function streamClosed(): StorageError {
  return new StorageError(StorageErrorCode.Closed, 'the watch stream is closed');
}
