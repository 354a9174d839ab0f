/**
 * Runs what arrives in one turn of the event loop together, at the turn's end, in the order of arrival.
 *
 * Left to itself Node reads one request, runs it to its answer, writes that, and turns to the next connection; the kernel's network code and
 * ours drive each other out of the processor's caches each time. Together all requests are read, then all run, in step, then all answers
 * are written, and the same work costs little more than half (docs/explanation/performance.md). Nobody waits for a timer: a request that comes
 * alone runs in the turn that brought it.
 */
export class TurnBatch<T> {
  readonly #run: (item: T) => void;
  #waiting: T[] = [];
  readonly #flush = (): void => {
    const items = this.#waiting;
    this.#waiting = [];
    for (const item of items) this.#run(item);
  };

  /** `run` must not throw. */
  constructor(run: (item: T) => void) {
    this.#run = run;
  }

  add(item: T): void {
    if (this.#waiting.push(item) === 1) setImmediate(this.#flush);
  }
}
