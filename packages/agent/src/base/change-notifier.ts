/** Passes notifications of a change from the parts that observe it to the parts that act on it. */
export class ChangeNotifier<Arguments extends readonly unknown[] = []> {
  readonly #listeners: ((...change: Arguments) => void)[] = [];

  /** Adds a listener. Notifications before this call are not repeated. */
  subscribe(listener: (...change: Arguments) => void): void {
    this.#listeners.push(listener);
  }

  /** Calls all listeners synchronously, in the order in which they were added. */
  notify(...change: Arguments): void {
    for (const listener of this.#listeners) listener(...change);
  }
}
