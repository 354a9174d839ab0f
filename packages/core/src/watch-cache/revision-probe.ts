import type { Revision, Store } from '../storage/store.ts';

/**
 * Linearizable revisions for any number of readers: at most one question is on its way to the store, and all who came
 * while it was share the next. An answer is only given to those who asked before the question was put.
 */
export class RevisionProbe {
  readonly #store: Store;
  #running: Promise<unknown> | undefined;
  #next: Promise<Revision> | undefined;

  constructor(store: Store) {
    this.#store = store;
  }

  /** The revision of the store at some time after this call. */
  read(): Promise<Revision> {
    this.#next ??= this.#ask(this.#running);
    return this.#next;
  }

  async #ask(previous: Promise<unknown> | undefined): Promise<Revision> {
    // Waiting for nothing still lets everybody of this turn join.
    await previous;
    const answer = this.#store.currentRevision();
    this.#next = undefined;
    const settled = answer.then(noop, noop);
    this.#running = settled;
    try {
      return await answer;
    } finally {
      if (this.#running === settled) this.#running = undefined;
    }
  }
}

function noop(): void {}
