/**
 * Everything that waits for one signal. The signal has a single listener of the platform, however many calls share it:
 * Node reports a leak from the eleventh on, and removing one of n listeners costs n steps.
 */
class AbortListeners {
  readonly #signal: AbortSignal;
  readonly #listeners = new Set<() => void>();
  #attached = false;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  add(listener: () => void): void {
    this.#listeners.add(listener);
    if (this.#attached) return;
    this.#attached = true;
    this.#signal.addEventListener('abort', this, { once: true });
  }

  remove(listener: () => void): void {
    if (!this.#listeners.delete(listener) || this.#listeners.size > 0 || !this.#attached) return;
    this.#attached = false;
    this.#signal.removeEventListener('abort', this);
  }

  handleEvent(): void {
    this.#attached = false;
    for (const listener of this.#listeners) {
      this.#listeners.delete(listener);
      try {
        listener();
      } catch (error) {
        // As with listeners of the platform, one that fails does not keep the others from running.
        process.nextTick(() => {
          throw error;
        });
      }
    }
  }
}

const listenersOf = new WeakMap<AbortSignal, AbortListeners>();

/**
 * Calls `listener` once when the signal aborts. A signal that has aborted already calls nothing, and undefined never
 * aborts. Any number of calls may share a signal. Adding the same function again changes nothing.
 */
export function addAbortListener(signal: AbortSignal | undefined, listener: () => void): void {
  if (signal === undefined || signal.aborted) return;
  let listeners = listenersOf.get(signal);
  if (listeners === undefined) {
    listeners = new AbortListeners(signal);
    listenersOf.set(signal, listeners);
  }
  listeners.add(listener);
}

/** Undoes {@link addAbortListener}. Costs the same however many listeners there are. */
export function removeAbortListener(signal: AbortSignal | undefined, listener: () => void): void {
  if (signal !== undefined) listenersOf.get(signal)?.remove(listener);
}
