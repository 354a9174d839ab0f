import { type ContainerId, RuntimeError } from '@keelson/container-runtime';
import { addAbortListener, type Clock, removeAbortListener } from '@keelson/core';

const firstLookMs = 20;
const lastLookMs = 1_000;

/** Waits for the ends of containers: told by events, and looked for now and then in case none comes. */
export class ContainerWaits {
  readonly #waiting = new Map<ContainerId, Set<() => void>>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Something happened to this container. */
  wake(id: ContainerId): void {
    for (const look of this.#waiting.get(id) ?? []) look();
  }

  /** True when `look` says so; false when the time is over. @throws `Aborted` */
  async until(
    id: ContainerId,
    look: () => Promise<boolean>,
    limitMs: number,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    const deadline = this.#clock.monotonic() + limitMs;
    for (let wait = firstLookMs; ; wait = Math.min(wait * 2, lastLookMs)) {
      if (signal?.aborted) throw new RuntimeError('Aborted', 'the caller gave up', { cause: signal.reason });
      if (await look()) return true;
      const left = deadline - this.#clock.monotonic();
      if (left <= 0) return false;
      await this.#pause(id, Math.min(wait, left), signal);
    }
  }

  #pause(id: ContainerId, ms: number, signal: AbortSignal | undefined): Promise<void> {
    const set = this.#waiting.get(id) ?? new Set<() => void>();
    this.#waiting.set(id, set);
    return new Promise((resolve) => {
      const go = () => {
        cancel();
        removeAbortListener(signal, go);
        set.delete(go);
        if (set.size === 0) this.#waiting.delete(id);
        resolve();
      };
      const cancel = this.#clock.after(ms, go);
      addAbortListener(signal, go);
      set.add(go);
    });
  }
}
