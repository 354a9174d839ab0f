import { X509Certificate } from 'node:crypto';
import type { Clock, Gauge, Logger, Metrics } from '@keelson/core/runtime';
import type { Credentials } from './credentials.ts';

export interface CredentialsRenewalOptions {
  readonly current: Credentials;
  /** Reads the credentials and renews those that expire soon. */
  readonly load: () => Promise<Credentials>;
  /** Called when a certificate has been renewed or its file was replaced. */
  readonly onChange: (next: Credentials) => void | Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** Interval at which the files are read, in milliseconds. */
export const credentialsPollMs = 60_000;
const dayMs = 86_400_000;
/**
 * A certificate with a shorter remaining validity is reported daily. Certificates that are renewed in time never reach
 * it.
 */
const warnBeforeMs = 30 * dayMs;

const certificatesOf = (credentials: Credentials): readonly (readonly [name: string, pem: string])[] => [
  ['ca', credentials.authority],
  ['server', credentials.server.certificate],
  ...(credentials.named === undefined ? [] : [['named', credentials.named.certificate] as const]),
  ['admin', credentials.admin.certificate],
  ['agent-client', credentials.agentClient.certificate],
];

/**
 * Applies changed files of the data directory and renews certificates while the server runs. While the files cannot be
 * used, the previous credentials remain in use.
 */
export class CredentialsRenewal {
  readonly #options: CredentialsRenewalOptions;
  readonly #ends: Gauge;
  readonly #warned = new Map<string, number>();
  #current: Credentials;
  #problem = '';
  #stopped = false;
  #cancel: () => void = () => {};

  constructor(options: CredentialsRenewalOptions) {
    this.#options = options;
    this.#current = options.current;
    this.#ends = options.metrics.gauge({
      name: 'keelson_certificate_expiration_timestamp_seconds',
      help: 'End of the validity of the certificates of this server, in seconds since 1970.',
      labels: ['certificate'],
    });
    this.#report();
    this.#schedule();
  }

  get current(): Credentials {
    return this.#current;
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#cancel = this.#options.clock.after(credentialsPollMs, () => void this.#poll().then(() => this.#schedule()));
  }

  async #poll(): Promise<void> {
    const { load, onChange, logger } = this.#options;
    try {
      const next = await load();
      if (this.#stopped) return;
      if (JSON.stringify(next) !== JSON.stringify(this.#current)) {
        this.#current = next;
        await onChange(next);
        logger.info('certificates of the server have changed and are in use', { certificates: this.#names(next) });
      }
      this.#problem = '';
    } catch (err) {
      const { message } = err as Error;
      if (message !== this.#problem)
        logger.error('certificates of the server cannot be renewed, the previous ones remain in use', { err });
      this.#problem = message;
    }
    this.#report();
  }

  #names(credentials: Credentials): Record<string, string> {
    return Object.fromEntries(
      certificatesOf(credentials).map(([name, pem]) => [name, new X509Certificate(pem).validTo]),
    );
  }

  #report(): void {
    const { clock, logger } = this.#options;
    for (const [certificate, pem] of certificatesOf(this.#current)) {
      const end = Date.parse(new X509Certificate(pem).validTo);
      this.#ends.set(end / 1000, { certificate });
      const last = this.#warned.get(certificate) ?? Number.NEGATIVE_INFINITY;
      if (end - clock.now() >= warnBeforeMs || clock.now() - last < dayMs) continue;
      this.#warned.set(certificate, clock.now());
      logger.warn('a certificate of the server expires soon', { certificate, until: new Date(end).toISOString() });
    }
  }
}
