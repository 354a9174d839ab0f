import type { AlternativeNames } from '@keelson/certificates';
import { Backoff } from '@keelson/client';
import { type ApiClient, isStatusError } from '@keelson/core';
import { type Clock, type Logger, pause } from '@keelson/core/runtime';
import type { CertificateStore } from './certificate-store.ts';
import type { ClientCertificate } from './client-certificate.ts';
import { requestCertificate } from './request-certificate.ts';

/** The client certificate in use, and its replacement. */
export interface ShownCertificate {
  /** Returns undefined when no certificate is in use. Rejects while the client config cannot be used. */
  certificate(): Promise<ClientCertificate | undefined>;
  /** Replaces the certificate on new connections. */
  show(certificate: ClientCertificate): void;
}

export interface CertificateRotationOptions {
  readonly client: ApiClient;
  readonly shown: ShownCertificate;
  readonly store: Pick<CertificateStore, 'keep'>;
  /** Names and addresses of a serving certificate. Absent: the certificate is one of a client. */
  readonly names?: () => Promise<AlternativeNames>;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
}

/** Long pauses are split, because timers of Node.js are limited to 24 days. */
const maxPauseMs = 86_400_000;
/**
 * Minimum period between two renewals, which limits the load of a server that issues certificates with short lifetimes.
 */
const minRenewalPeriodMs = 60_000;
const firstRetryMs = 1_000;
const maxRetryMs = 60_000;

/**
 * Fraction of the lifetime after which a certificate is renewed. It is random so that nodes that joined at the same
 * time do not renew their certificates at the same time.
 */
const minLifetimeFraction = 0.7;
const lifetimeSpread = 0.2;

/** The client certificate has expired and the API server rejects it, so it cannot be renewed. */
export class ExpiredCertificateError extends Error {
  constructor(notAfterMs: number) {
    const time = new Date(notAfterMs).toISOString();
    super(
      `the client certificate expired at ${time} and the API server no longer accepts it; ` +
        'start again with --bootstrap-clusterconfig',
    );
    this.name = 'ExpiredCertificateError';
  }
}

/** Renews a certificate of the agent before it expires. */
export class CertificateRotation {
  readonly #options: CertificateRotationOptions;
  readonly #stop = new AbortController();
  /** Never resolves; rejects with {@link ExpiredCertificateError} when the certificate can no longer be renewed. */
  readonly failed: Promise<never>;
  #fail: (error: unknown) => void = () => {};
  #running: Promise<void> = Promise.resolve();

  constructor(options: CertificateRotationOptions) {
    this.#options = options;
    this.failed = new Promise((_, reject) => {
      this.#fail = reject;
    });
    this.failed.catch(() => {});
  }

  start(): void {
    this.#running = this.#run().catch((error: unknown) => this.#fail(error));
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock, logger, shown, random } = this.#options;
    const { signal } = this.#stop;
    const backoff = new Backoff(clock, firstRetryMs, maxRetryMs);
    let earliestMs = 0;
    while (!signal.aborted) {
      const current = await shown.certificate().catch(() => 'none yet' as const);
      if (current === undefined)
        return logger.warn('--rotate-certificates: the client config has no certificate to renew');
      if (current !== 'none yet') {
        await this.#sleepUntil(Math.max(earliestMs, renewalTime(current, random)));
        if (signal.aborted) return;
        if (await this.#renewed(current)) {
          backoff.reset();
          earliestMs = clock.now() + minRenewalPeriodMs;
          continue;
        }
      }
      await backoff.wait(signal);
    }
  }

  /** Waits for a time of the wall clock, which may be adjusted during the wait. */
  async #sleepUntil(timeMs: number): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stop;
    while (!signal.aborted && clock.now() < timeMs) {
      await pause(clock, Math.min(timeMs - clock.now(), maxPauseMs), signal);
    }
  }

  async #renewed(current: ClientCertificate): Promise<boolean> {
    const { client, store, shown, names, nodeName, clock, logger } = this.#options;
    const what = names === undefined ? 'client' : 'serving';
    const { signal } = this.#stop;
    try {
      const serving = names && { serving: await names() };
      const next = await requestCertificate({ client, nodeName, clock, logger, signal, ...serving });
      if (next === undefined) return false;
      await store.keep(next, clock.now());
      shown.show(next);
      logger.info(`the ${what} certificate was renewed`, { until: new Date(next.notAfterMs).toISOString() });
      return true;
    } catch (err) {
      const refused = isStatusError(err) && (err.code === 401 || err.code === 403);
      if (refused && current.notAfterMs <= clock.now()) throw new ExpiredCertificateError(current.notAfterMs);
      logger.warn(`the ${what} certificate could not be renewed, will retry`, { err });
      return false;
    }
  }
}

/** The time at which a certificate is renewed: a random time between 70 and 90 percent of its lifetime. */
export function renewalTime({ notBeforeMs, notAfterMs }: ClientCertificate, random: () => number): number {
  return notBeforeMs + (notAfterMs - notBeforeMs) * (minLifetimeFraction + lifetimeSpread * random());
}
