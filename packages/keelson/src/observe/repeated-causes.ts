import type { Clock } from '@keelson/core';

const repeatMs = 30_000;
const maxCauses = 100;

interface Known {
  /** Monotonic time before which the cause is not reported again. */
  readonly until: number;
  repeated: number;
}

/**
 * Limits log lines: each cause is reported at once, and again after half a minute at the earliest. Remembers a bounded
 * number of causes.
 */
export class RepeatedCauses {
  readonly #clock: Clock;
  readonly #known = new Map<string, Known>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * How often the cause was left out since its last report; undefined when it is not to be reported now. Numbers in it
   * do not count.
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
