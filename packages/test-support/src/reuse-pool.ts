/** An engine or a server of tests that can be emptied and used again. */
export interface Reusable {
  /** Removes everything that a test left behind; throws if that is not possible. */
  empty(): Promise<void>;
  /** Empties and closes the engine or server. */
  dispose(): Promise<void>;
}

/** A pool of items that are expensive to open: a test gets one that no other test uses at the same time. */
export class ReusePool<T extends Reusable> implements AsyncDisposable {
  readonly #create: () => Promise<T>;
  readonly #idle: T[] = [];

  constructor(create: () => Promise<T>) {
    this.#create = create;
  }

  async open(): Promise<T> {
    return this.lend(this.#idle.pop() ?? (await this.#create()));
  }

  /**
   * `dispose()` of the result empties the item and returns it to the pool; an item that cannot be emptied is closed.
   */
  lend(item: T): T {
    const dispose = async () => {
      try {
        await item.empty();
      } catch (error) {
        await item.dispose().catch(() => {});
        throw error;
      }
      this.#idle.push(item);
    };
    return { ...item, dispose };
  }

  /** Closes the items that no test uses. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const item of this.#idle.splice(0)) await item.dispose();
  }
}
