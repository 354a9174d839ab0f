import { StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import { addAbortListener, removeAbortListener } from '../meta/abort-listeners.ts';
import { throwIfAborted } from './store-checks.ts';

/**
 * One read shared by concurrent callers. At most one read is in progress. Callers that arrive during a read share the
 * next one, because the result of the present one may be older than their call. Every result is therefore of a read
 * that began after the call of everyone who receives it, which keeps shared reads linearizable.
 */
export class Coalesced<T> {
  readonly #read: () => Promise<T>;
  #running: Promise<unknown> | undefined;
  #next: Promise<T> | undefined;

  constructor(read: () => Promise<T>) {
    this.#read = read;
  }

  /**
   * The result of a read that begins after this call. A failure reaches the callers that shared the failed read only.
   *
   * @throws StorageError `Timeout` when the signal aborts first; the read itself continues for the other callers.
   */
  get(signal?: AbortSignal): Promise<T> {
    if (signal === undefined) return this.#join();
    return new Promise((resolve, reject) => {
      throwIfAborted(signal);
      const abort = () =>
        reject(new StorageError(StorageErrorCode.Timeout, 'the call was aborted', { cause: signal.reason }));
      addAbortListener(signal, abort);
      this.#join()
        .then(resolve, reject)
        .finally(() => removeAbortListener(signal, abort));
    });
  }

  #join(): Promise<T> {
    this.#next ??= this.#start(this.#running);
    return this.#next;
  }

  async #start(previous: Promise<unknown> | undefined): Promise<T> {
    // Without a previous read, this still lets all callers of the same turn join.
    await previous;
    this.#next = undefined;
    const result = this.#read();
    const settled = result.then(ignore, ignore);
    this.#running = settled;
    try {
      return await result;
    } finally {
      if (this.#running === settled) this.#running = undefined;
    }
  }
}

function ignore(): void {}
