import { type IntervalHistogram, monitorEventLoopDelay, performance } from 'node:perf_hooks';

const resolutionMs = 10;
const ms = (nanos: number): number => Math.round(nanos / 1000) / 1000;

/**
 * How long the event loop was blocked by synchronous code, which corresponds to lock contention in other runtimes.
 * Times are milliseconds beyond the resolution of 10.
 */
export class LoopDelay {
  readonly #histogram: IntervalHistogram = monitorEventLoopDelay({ resolution: resolutionMs });
  readonly #before = performance.eventLoopUtilization();

  start(): void {
    this.#histogram.enable();
  }

  stop(): void {
    this.#histogram.disable();
  }

  /** The measurements since the start; times are 0 before the first one. */
  report(): object {
    const { min, max, mean, stddev, exceeds, percentiles } = this.#histogram;
    const measured = max > 0;
    const beyond = (nanos: number) => (measured ? Math.max(0, ms(nanos) - resolutionMs) : 0);
    const { utilization } = performance.eventLoopUtilization(this.#before);
    return {
      unit: 'ms',
      min: beyond(min),
      max: beyond(max),
      mean: beyond(mean),
      stddev: measured ? ms(stddev) : 0,
      longer_than_an_hour: exceeds,
      percentiles: Object.fromEntries(
        measured ? [...percentiles].map(([share, nanos]) => [String(share), beyond(nanos)]) : [],
      ),
      event_loop_utilization: utilization,
    };
  }
}
