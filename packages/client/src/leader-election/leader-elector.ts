import type { ApiClient } from '@keelson/core';
import { addAbortListener, type Clock, type Logger, pause, removeAbortListener } from '@keelson/core/runtime';
import { LeaseLock } from './lease-lock.ts';

/** Options of a {@link LeaderElector}: the Lease, the identity of this candidate, and the times. */
export interface LeaderElectorOptions {
  readonly client: ApiClient;
  /** Namespace and name of the Lease that all candidates use. */
  readonly namespace: string;
  readonly name: string;
  /** Unique identity of this candidate. */
  readonly identity: string;
  /**
   * The work of the leader. It is called when leadership is acquired. The signal aborts when leadership is lost or
   * released, and the work must then stop immediately. Leadership continues when it returns, and is released when it
   * throws.
   */
  readonly lead: (signal: AbortSignal) => Promise<void>;
  /** Called when leadership was lost involuntarily: another candidate may be the leader. */
  readonly onLost?: () => void;
  /** Called when another leader is observed; '' for none. */
  readonly onLeader?: (identity: string) => void;
  /** Time after the last renewal during which other candidates do not acquire the lease. Default 15 s. */
  readonly leaseDurationMs?: number;
  /** A leader that could not renew for this time stops leading; less than `leaseDurationMs`. Default 10 s. */
  readonly renewDeadlineMs?: number;
  /** Pause between attempts; up to a fifth is added at random. Default 2 s. */
  readonly retryPeriodMs?: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Timeout of the last request of a stopping leader. */
const releaseMs = 5_000;

/**
 * Ensures that at most one of several candidates leads. The leader holds a Lease object and renews it. Other candidates
 * acquire the lease when it has not changed for its duration. A leader that cannot renew stops before the duration has
 * passed since it sent its last successful renewal.
 *
 * A process that is suspended cannot stop in time. Use preconditions for writes that must not come from two leaders.
 */
export class LeaderElector {
  readonly #options: Required<Pick<LeaderElectorOptions, 'leaseDurationMs' | 'renewDeadlineMs' | 'retryPeriodMs'>> &
    LeaderElectorOptions;
  readonly #lock: LeaseLock;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  #leading = false;
  #leader = '';

  /** @throws Error when the times contradict each other */
  constructor(options: LeaderElectorOptions) {
    const { leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2_000 } = options;
    if (!(retryPeriodMs > 0 && retryPeriodMs * 1.2 < renewDeadlineMs && renewDeadlineMs < leaseDurationMs)) {
      throw new Error('retryPeriodMs * 1.2 < renewDeadlineMs < leaseDurationMs must hold');
    }
    if (options.identity === '') throw new Error('identity must not be empty');
    this.#options = { ...options, leaseDurationMs, renewDeadlineMs, retryPeriodMs };
    this.#lock = new LeaseLock(this.#options);
  }

  /** Joins the election. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** Leaves the election: aborts the leader's work, waits for it, and releases the lease. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  get isLeader(): boolean {
    return this.#leading;
  }

  /** Identity of the last observed leader; '' for none. */
  get leader(): string {
    return this.#leader;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const wonAt = await this.#acquire(signal);
      if (wonAt !== undefined) await this.#term(wonAt);
    }
  }

  /** Resolves when the lease is acquired, with the start time of the request that acquired it. */
  async #acquire(signal: AbortSignal): Promise<number | undefined> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      const at = clock.monotonic();
      if (await this.#tryHold(this.#options.renewDeadlineMs, signal)) return at;
      await pause(clock, this.#period(), signal);
    }
    return undefined;
  }

  /** Leads until leadership is lost, the work fails or the elector stops. */
  async #term(wonAt: number): Promise<void> {
    const { lead, onLost, logger, identity, name } = this.#options;
    const end = new AbortController();
    const abort = () => end.abort();
    addAbortListener(this.#stop.signal, abort);
    if (this.#stop.signal.aborted) abort();
    this.#leading = true;
    logger.info('leading', { component: 'leader-election', lease: name, identity });
    let failed = false;
    const work = (async () => lead(end.signal))().catch((err: unknown) => {
      failed = !end.signal.aborted;
      if (failed) logger.error('the work of the leader failed', { component: 'leader-election', lease: name, err });
      abort();
    });
    const lost = await this.#renew(wonAt, end.signal);
    this.#leading = false;
    abort();
    removeAbortListener(this.#stop.signal, abort);
    if (lost) {
      logger.warn('leadership lost', { component: 'leader-election', lease: name, identity });
      this.#call(onLost);
    }
    // Two terms of one process never overlap, and the lease is not released while the work may still write.
    await work;
    if (!lost) await this.#release();
    if (failed) await pause(this.#options.clock, this.#period(), this.#stop.signal);
  }

  /** Renews the lease until that fails for too long (true) or the term is ended locally (false). */
  async #renew(wonAt: number, ended: AbortSignal): Promise<boolean> {
    const { clock, renewDeadlineMs, identity } = this.#options;
    let renewedAt = wonAt;
    for (;;) {
      const leftMs = () => renewedAt + renewDeadlineMs - clock.monotonic();
      await pause(clock, Math.min(this.#period(), Math.max(0, leftMs())), ended);
      if (ended.aborted) return false;
      const at = clock.monotonic();
      if (leftMs() <= 0) return true;
      if (await this.#tryHold(leftMs(), ended)) renewedAt = at;
      else if (!ended.aborted && this.#lock.holder !== '' && this.#lock.holder !== identity) return true;
    }
  }

  /** One attempt with a timeout; a failed request counts as "not acquired". */
  async #tryHold(timeoutMs: number, signal: AbortSignal): Promise<boolean> {
    const { clock, logger, name } = this.#options;
    const attempt = new AbortController();
    const abort = () => attempt.abort();
    const cancel = clock.after(timeoutMs, abort);
    addAbortListener(signal, abort);
    const aborted = new Promise<false>((resolve) =>
      attempt.signal.addEventListener('abort', () => resolve(false), { once: true }),
    );
    const held = this.#lock.tryHold(attempt.signal).then(
      (outcome) => outcome.held,
      (err: unknown) => {
        logger.debug('the lease cannot be reached', { component: 'leader-election', lease: name, err });
        return false;
      },
    );
    try {
      return await Promise.race([held, aborted]);
    } finally {
      cancel();
      removeAbortListener(signal, abort);
      this.#report();
    }
  }

  async #release(): Promise<void> {
    const { clock, logger, name } = this.#options;
    const deadline = new AbortController();
    const cancel = clock.after(releaseMs, () => deadline.abort());
    try {
      await this.#lock.release(deadline.signal);
    } catch (err) {
      logger.debug('the lease was not released', { component: 'leader-election', lease: name, err });
    } finally {
      cancel();
      this.#report();
    }
  }

  #report(): void {
    const { holder } = this.#lock;
    if (holder === this.#leader) return;
    this.#leader = holder;
    this.#call(() => this.#options.onLeader?.(holder));
  }

  #call(listener: (() => void) | undefined): void {
    try {
      listener?.();
    } catch (err) {
      this.#options.logger.error('a listener failed', { component: 'leader-election', lease: this.#options.name, err });
    }
  }

  #period(): number {
    // Not injected: jitter, which spreads load over time and decides no result.
    return this.#options.retryPeriodMs * (1 + Math.random() / 5);
  }
}
