/**
 * Shares the answer of `ask` among callers: those that come while it runs wait for the next run, which begins after all
 * of them, so everyone gets an answer that is newer than the question.
 */
export class Coalesced<T> {
  readonly #ask: () => Promise<T>;
  #running: Promise<T> | undefined;
  #next: Promise<T> | undefined;

  constructor(ask: () => Promise<T>) {
    this.#ask = ask;
  }

  get(): Promise<T> {
    if (this.#running === undefined) return this.#start();
    if (this.#next === undefined) {
      const again = () => {
        this.#next = undefined;
        return this.#start();
      };
      this.#next = this.#running.then(again, again);
    }
    return this.#next;
  }

  #start(): Promise<T> {
    const running = this.#ask().finally(() => {
      if (this.#running === running) this.#running = undefined;
    });
    this.#running = running;
    return running;
  }
}
