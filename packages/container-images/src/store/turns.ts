/** Runs tasks with the same key one after the other. */
export class Turns {
  readonly #last = new Map<string, Promise<void>>();

  async run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const mine = before.then(task);
    const ended = mine.then(
      () => {},
      () => {},
    );
    this.#last.set(key, ended);
    try {
      return await mine;
    } finally {
      if (this.#last.get(key) === ended) this.#last.delete(key);
    }
  }
}
