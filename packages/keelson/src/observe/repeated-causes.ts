import type { Clock } from '@keelson/core/runtime';

const repeatMs = 30_000;
const maxCauses = 100;

interface Known {
  /** Monotonic time before which the cause is not reported again. */
  readonly until: number;
  repeated: number;
}

/**
 * Limits repeated log lines: a cause is reported immediately and then at most every thirty seconds. The number of
 * tracked causes is limited.
 */
export class RepeatedCauses {
  readonly #clock: Clock;
  readonly #known = new Map<string, Known>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * The number of suppressed reports since the last one; undefined when the cause must not be reported now. Causes that
   * differ only in numbers are equal.
   */
  admit(text: string): number | undefined {
    const cause = text.replace(/\d+/g, '#');
    const now = this.#clock.monotonic();
    const known = this.#known.get(cause);
    if (known !== undefined && now < known.until) {
      known.repeated++;
      return undefined;
    }
    if (known === undefined && this.#known.size >= maxCauses) {
      for (const [old, { until }] of this.#known) if (until <= now) this.#known.delete(old);
      if (this.#known.size >= maxCauses) return undefined;
    }
    this.#known.set(cause, { until: now + repeatMs, repeated: 0 });
    return known?.repeated ?? 0;
  }
}
