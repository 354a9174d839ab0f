import {
  addAbortListener,
  type Revision,
  removeAbortListener,
  StorageError,
  StorageErrorCode,
  throwIfAborted,
} from '@keelson/core';

/**
 * Questions for the current revision, at most one under way: whoever asks while one is, shares the next, since the
 * answer of the present one may be older than the question.
 */
export class LatestRevision {
  readonly #ask: () => Promise<Revision>;
  #running: Promise<Revision> | undefined;
  #next: Promise<Revision> | undefined;

  constructor(ask: () => Promise<Revision>) {
    this.#ask = ask;
  }

  async get(signal?: AbortSignal): Promise<Revision> {
    throwIfAborted(signal);
    const answer = this.#join();
    if (signal === undefined) return answer;
    return new Promise((resolve, reject) => {
      const abort = () =>
        reject(new StorageError(StorageErrorCode.Timeout, 'the call was aborted', { cause: signal.reason }));
      addAbortListener(signal, abort);
      answer.then(resolve, reject).finally(() => removeAbortListener(signal, abort));
    });
  }

  #join(): Promise<Revision> {
    const running = this.#running;
    if (running === undefined) return this.#start();
    this.#next ??= running.then(
      () => this.#start(),
      () => this.#start(),
    );
    return this.#next;
  }

  #start(): Promise<Revision> {
    this.#next = undefined;
    const asked = this.#ask().finally(() => {
      if (this.#running === asked) this.#running = undefined;
    });
    this.#running = asked;
    return asked;
  }
}
