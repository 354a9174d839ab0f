import { Backoff, pause } from '@keelson/client';
import { type ApiClient, type Clock, isStatusError, type Logger } from '@keelson/core';
import type { CertificateStore } from './certificate-store.ts';
import type { ClientCertificate } from './client-certificate.ts';
import { requestCertificate } from './request-certificate.ts';

/** The certificate that clients show, and its exchange. */
export interface ShownCertificate {
  /** Undefined when they show none. Rejects while the config file cannot be used. */
  certificate(): Promise<ClientCertificate | undefined>;
  /** From now on this one is shown, on new connections. */
  show(certificate: ClientCertificate): void;
}

export interface CertificateRotationOptions {
  readonly client: ApiClient;
  readonly shown: ShownCertificate;
  readonly store: CertificateStore;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** 0..1. */
  readonly random: () => number;
}

/** Timers of the platform take no more than 24 days. */
const longestPauseMs = 86_400_000;
/**
 * From one certificate to the next, however short they are: a server that gives none that last is not to be kept busy.
 */
const leastPauseMs = 60_000;
const firstRetryMs = 1_000;
const maxRetryMs = 60_000;

/**
 * Part of its lifetime after which a certificate is renewed; random, so that nodes that joined together do not all come
 * at once.
 */
const earliest = 0.7;
const spread = 0.2;

/** The API server is there, and no longer knows the node, whose certificate has ended. */
export class ExpiredCertificateError extends Error {
  constructor(notAfterMs: number) {
    super(
      `the client certificate ended at ${new Date(notAfterMs).toISOString()} and the API server no longer takes it; start again with --bootstrap-clusterconfig`,
    );
    this.name = 'ExpiredCertificateError';
  }
}

/** Renews the agent's client certificate in good time, as long as it runs. */
export class CertificateRotation {
  readonly #options: CertificateRotationOptions;
  readonly #stop = new AbortController();
  /** Never resolves; rejects with {@link ExpiredCertificateError} when the node cannot renew any more. */
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
          earliestMs = clock.now() + leastPauseMs;
          continue;
        }
      }
      await backoff.wait(signal);
    }
  }

  /** By the wall clock, which may jump. */
  async #sleepUntil(timeMs: number): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stop;
    while (!signal.aborted && clock.now() < timeMs) {
      await pause(clock, Math.min(timeMs - clock.now(), longestPauseMs), signal);
    }
  }

  async #renewed(current: ClientCertificate): Promise<boolean> {
    const { client, store, shown, nodeName, clock, logger } = this.#options;
    const { signal } = this.#stop;
    try {
      const next = await requestCertificate({ client, nodeName, clock, logger, signal });
      if (next === undefined) return false;
      await store.keep(next, clock.now());
      shown.show(next);
      logger.info('the client certificate was renewed', { until: new Date(next.notAfterMs).toISOString() });
      return true;
    } catch (err) {
      const refused = isStatusError(err) && (err.code === 401 || err.code === 403);
      if (refused && current.notAfterMs <= clock.now()) throw new ExpiredCertificateError(current.notAfterMs);
      logger.warn('the client certificate could not be renewed, will retry', { err });
      return false;
    }
  }
}

/** When a certificate is to be renewed: at a random time between 70 and 90 per cent of its life. */
export function renewalTime({ notBeforeMs, notAfterMs }: ClientCertificate, random: () => number): number {
  return notBeforeMs + (notAfterMs - notBeforeMs) * (earliest + spread * random());
}
