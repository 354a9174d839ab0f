import { type ContainerId, RuntimeError } from '@keelson/container-runtime';
import { addAbortListener, type Clock, removeAbortListener } from '@keelson/core/runtime';

const firstPollMs = 20;
const maxPollMs = 1_000;

/** Waits for the exits of containers: events wake the waiting calls, which also poll in case an event is missed. */
export class ContainerWaits {
  readonly #waiting = new Map<ContainerId, Set<() => void>>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Makes the calls that wait for this container check its state now. */
  wake(id: ContainerId): void {
    for (const resume of this.#waiting.get(id) ?? []) resume();
  }

  /** Waits until `condition` returns true. Returns false if it does not within `limitMs`. @throws `Aborted` */
  async until(
    id: ContainerId,
    condition: () => Promise<boolean>,
    limitMs: number,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    const deadline = this.#clock.monotonic() + limitMs;
    for (let wait = firstPollMs; ; wait = Math.min(wait * 2, maxPollMs)) {
      if (signal?.aborted) throw new RuntimeError('Aborted', 'the caller gave up', { cause: signal.reason });
      if (await condition()) return true;
      const left = deadline - this.#clock.monotonic();
      if (left <= 0) return false;
      await this.#pause(id, Math.min(wait, left), signal);
    }
  }

  #pause(id: ContainerId, ms: number, signal: AbortSignal | undefined): Promise<void> {
    const set = this.#waiting.get(id) ?? new Set<() => void>();
    this.#waiting.set(id, set);
    return new Promise((resolve) => {
      const resume = () => {
        cancel();
        removeAbortListener(signal, resume);
        set.delete(resume);
        if (set.size === 0) this.#waiting.delete(id);
        resolve();
      };
      const cancel = this.#clock.after(ms, resume);
      addAbortListener(signal, resume);
      set.add(resume);
    });
  }
}
