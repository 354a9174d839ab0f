import { uptime } from 'node:os';
import type { Clock, Logger } from '@keelson/core/runtime';
import type { PodQueries, PodUsage, UsageStats } from '../../base/contracts/pod-queries.ts';
import { Repeater } from '../../base/repeater.ts';
import { nodeUsage } from './node-usage.ts';

/** Usage samples of a container or of the machine. */
export interface UsageSeries {
  /** Absent for the machine. */
  readonly of?: { readonly namespace: string; readonly pod: string; readonly uid: string; readonly container: string };
  readonly startTimeMs: number;
  /** Oldest first, never empty. */
  readonly samples: readonly UsageStats[];
}

export interface UsageHistoryOptions {
  readonly state: Pick<PodQueries, 'usage'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly periodMs: number;
  /** Default: the machine's. */
  readonly readNode?: (nowMs: number) => Promise<UsageStats>;
}

/** The result of the last reading. */
export interface UsageState {
  readonly machine: UsageSeries;
  readonly containers: readonly UsageSeries[];
  /** False when the runtime did not answer; `containers` is then the previous result. */
  readonly complete: boolean;
}

/** Number of samples that kubelet returns by default. */
const maxSamples = 60;
/** Minimum age of a reading before the runtime is read again, because a reading is expensive. */
const leastAgeMs = 1_000;

/** Recent CPU and memory usage of the machine and of containers. */
export class UsageHistory {
  readonly #options: UsageHistoryOptions;
  readonly #repeater: Repeater;
  #machine: UsageSeries | undefined;
  #containers: ReadonlyMap<string, UsageSeries> = new Map();
  #complete = true;
  #readMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor(options: UsageHistoryOptions) {
    const { clock, logger, periodMs } = options;
    this.#options = options;
    this.#repeater = new Repeater({
      clock,
      logger,
      periodMs,
      what: 'reading the usage of containers',
      run: () => this.#refresh(),
    });
  }

  /** Reads periodically, so that a history exists before the first request. */
  start(): void {
    this.#repeater.start();
  }

  async stop(): Promise<void> {
    await this.#repeater.stop();
  }

  /** Returns the usage; the newest sample is at most a second old. */
  async read(): Promise<UsageState> {
    await this.#refresh();
    if (this.#machine === undefined) throw new Error('the usage of the machine was not read');
    return { machine: this.#machine, containers: [...this.#containers.values()], complete: this.#complete };
  }

  async #refresh(): Promise<void> {
    if (this.#options.clock.monotonic() - this.#readMs < leastAgeMs) return;
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    await this.#reading;
  }

  async #read(): Promise<void> {
    const { state, clock, logger, readNode = nodeUsage } = this.#options;
    const nowMs = clock.now();
    const [node, pods] = await Promise.all([
      readNode(nowMs),
      state.usage().catch((err: unknown) => {
        // Logged once per outage of the runtime.
        if (this.#complete) logger.warn('the usage of containers could not be read', { err });
      }),
    ]);
    this.#readMs = clock.monotonic();
    this.#machine = longer(this.#machine, { startTimeMs: this.#machine?.startTimeMs ?? nowMs - uptime() * 1000 }, node);
    this.#complete = pods !== undefined;
    if (pods !== undefined) this.#containers = this.#next(pods);
  }

  /** The history of containers that no longer exist is removed. */
  #next(pods: readonly PodUsage[]): Map<string, UsageSeries> {
    const next = new Map<string, UsageSeries>();
    for (const { namespace, name: pod, uid, containers } of pods) {
      for (const { name: container, startTimeMs, ...sample } of containers) {
        const key = `${uid}/${container}`;
        const before = this.#containers.get(key);
        // A new start time means a new container, whose counters start at 0.
        const same = before?.startTimeMs === startTimeMs ? before : undefined;
        next.set(key, longer(same, { of: { namespace, pod, uid, container }, startTimeMs }, sample));
      }
    }
    return next;
  }
}

function longer(before: UsageSeries | undefined, rest: Omit<UsageSeries, 'samples'>, sample: UsageStats): UsageSeries {
  const samples = before?.samples ?? [];
  // The runtime decides when it measures; a repeated measurement is stored once.
  if (samples.at(-1)?.timeMs === sample.timeMs) return { ...rest, samples };
  return { ...rest, samples: [...samples.slice(1 - maxSamples), sample] };
}
