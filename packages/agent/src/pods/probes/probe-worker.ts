import type { Clock } from '@keelson/core/runtime';
import type { coreV1 } from '@keelson/kinds';
import type { Observation } from './prober.ts';

export type ProbeKind = 'liveness' | 'readiness' | 'startup';

export interface ProbeWorkerOptions {
  readonly kind: ProbeKind;
  readonly probe: coreV1.Probe;
  /** Epoch milliseconds. */
  readonly containerStartedMs: number;
  /** Added to the first delay, so that the probes of a node do not all run at the same time. */
  readonly offsetMs: number;
  readonly initially: boolean;
  /** Runs the probe once. */
  readonly run: () => Promise<Observation>;
  /** Called for each failed probe. */
  readonly onFailure: (output: string) => void;
  /** Called when the verdict has changed. */
  readonly onChange: () => void;
  readonly clock: Clock;
}

/**
 * Probes one container periodically. After a failure, liveness and startup probes pause: the container will be
 * replaced.
 */
export class ProbeWorker {
  readonly #options: ProbeWorkerOptions;
  #verdict: boolean | undefined;
  #streak = 0;
  #last: 'success' | 'failure' | undefined;
  #cancel: () => void = () => {};
  #stopped = false;

  constructor(options: ProbeWorkerOptions) {
    this.#options = options;
    this.#verdict = options.kind === 'startup' ? undefined : options.initially;
  }

  /** True: passed. Undefined: a startup probe that has neither passed nor failed. */
  get verdict(): boolean | undefined {
    return this.#verdict;
  }

  start(): void {
    const { clock, probe, containerStartedMs, offsetMs } = this.#options;
    const delayMs = Math.max(0, containerStartedMs + (probe.initialDelaySeconds ?? 0) * 1000 - clock.now());
    this.#cancel = clock.after(delayMs + offsetMs, () => void this.#tick());
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  async #tick(): Promise<void> {
    const { clock, probe, run } = this.#options;
    const begunMs = clock.monotonic();
    const observation = await run();
    if (this.#stopped) return;
    if (observation.result !== 'unknown') this.#count(observation.result, observation.output);
    const { kind } = this.#options;
    // A startup probe ends with its first verdict.
    if (
      this.#stopped ||
      (kind !== 'readiness' && this.#verdict === false) ||
      (kind === 'startup' && this.#verdict === true)
    )
      return;
    const periodMs = (probe.periodSeconds ?? 10) * 1000;
    this.#cancel = clock.after(Math.max(0, periodMs - (clock.monotonic() - begunMs)), () => void this.#tick());
  }

  #count(result: 'success' | 'failure', output: string): void {
    const { probe, kind, onFailure, onChange } = this.#options;
    this.#streak = result === this.#last ? this.#streak + 1 : 1;
    this.#last = result;
    if (result === 'failure') onFailure(output);
    const threshold =
      result === 'failure' ? (probe.failureThreshold ?? 3) : kind === 'readiness' ? (probe.successThreshold ?? 1) : 1;
    if (this.#streak < threshold) return;
    const verdict = result === 'success';
    if (verdict === this.#verdict) return;
    this.#verdict = verdict;
    onChange();
  }
}
