import { type Clock, isStorageError, type Logger, StorageErrorCode } from '@keelson/core';
import { RepeatedCauses } from '../observe/repeated-causes.ts';

/** Without a single success for this long the store counts as failing. */
const failingMs = 5_000;
const probeEveryMs = 1_000;

/** Failures that are answers of a store that works. */
const answers: readonly string[] = [
  StorageErrorCode.NotFound,
  StorageErrorCode.AlreadyExists,
  StorageErrorCode.Conflict,
  StorageErrorCode.Compacted,
  StorageErrorCode.FutureRevision,
  StorageErrorCode.EpochChanged,
  StorageErrorCode.TooLarge,
  StorageErrorCode.InvalidKey,
  StorageErrorCode.InvalidToken,
  StorageErrorCode.ExpiredToken,
  StorageErrorCode.SlowConsumer,
  StorageErrorCode.Closed,
];

/**
 * Learns from every call of a store whether it works, reports each cause of failures once and then from time to time,
 * and knows when no call has succeeded for several seconds. From the first failure to the next success the store is
 * asked every second, so that a recovery is noticed also when nobody calls.
 */
export class StoreHealth {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #probe: () => Promise<unknown>;
  readonly #causes: RepeatedCauses;
  #failingSince: number | undefined;
  #cancel: (() => void) | undefined;
  #stopped = false;

  /** `probe` reads something from the store, outside the calls that are reported here. */
  constructor(clock: Clock, logger: Logger, probe: () => Promise<unknown>) {
    this.#clock = clock;
    this.#causes = new RepeatedCauses(clock);
    this.#logger = logger;
    this.#probe = probe;
  }

  /** True when every read and write has failed for several seconds. */
  get failing(): boolean {
    return this.#failingSince !== undefined && this.#clock.monotonic() - this.#failingSince >= failingMs;
  }

  succeeded(): void {
    if (this.#failingSince === undefined) return;
    const seconds = Math.round((this.#clock.monotonic() - this.#failingSince) / 1000);
    this.#failingSince = undefined;
    this.#cancel?.();
    this.#cancel = undefined;
    if (seconds >= failingMs / 1000) this.#logger.info('the store answers again', { component: 'storage', seconds });
  }

  /** `signal`: of the call; what its caller ended is no failure of the store. */
  failed(error: unknown, signal?: AbortSignal): void {
    if (signal?.aborted || this.#stopped) return;
    const code = isStorageError(error) ? error.code : undefined;
    if (code !== undefined && answers.includes(code)) return;
    this.#report(error, code);
    // One record that cannot be read, or one slow write, says nothing about the others.
    if (code === StorageErrorCode.Corrupt || code === StorageErrorCode.Timeout) return;
    this.#failingSince ??= this.#clock.monotonic();
    this.#arm();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
  }

  #report(error: unknown, code: string | undefined): void {
    const reason = reasonOf(error);
    const repeated = this.#causes.admit(`${code} ${reason}`);
    if (repeated === undefined) return;
    const fields = { ...(code === undefined ? {} : { code }), reason, ...(repeated > 0 ? { repeated } : {}) };
    this.#logger.warn('the store failed', { component: 'storage', ...fields });
  }

  #arm(): void {
    if (this.#stopped || this.#cancel !== undefined) return;
    this.#cancel = this.#clock.after(probeEveryMs, () => {
      this.#probe().then(
        () => this.#probed(() => this.succeeded()),
        (error: unknown) => this.#probed(() => this.failed(error)),
      );
    });
  }

  /** The next probe is not begun before the outcome of this one. */
  #probed(outcome: () => void): void {
    this.#cancel = undefined;
    outcome();
  }
}

/** The message of a failure and of those that caused it, as far as they add something. */
export function reasonOf(error: unknown): string {
  const texts: string[] = [];
  for (
    let each = error;
    each !== undefined && each !== null && texts.length < 5;
    each = (each as { cause?: unknown }).cause
  ) {
    const text = each instanceof Error ? each.message : String(each);
    if (text !== '' && !texts.some((known) => known.includes(text))) texts.push(text);
  }
  return texts.join(': ');
}
