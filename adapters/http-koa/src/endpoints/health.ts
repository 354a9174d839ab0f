import type { QueryParameters } from '@keelson/core/internal';
import type { Logger } from '@keelson/core/runtime';
import type { HealthCheck } from '../exchange/options.ts';

export type HealthEndpoint = 'healthz' | 'livez' | 'readyz';

/** Text and code of a health response. */
export interface HealthAnswer {
  readonly code: 200 | 404 | 500;
  readonly text: string;
}

interface Outcome {
  readonly name: string;
  readonly healthy: boolean;
}

/** Limits of the excluded names that an answer repeats. */
const maxNamed = 20;
const maxName = 100;

const ping: HealthCheck = { name: 'ping', check: () => true, on: ['healthz', 'livez', 'readyz'] };

/**
 * The health endpoints: see docs/reference/api-rules.md#health-and-version. The reason of a failure is logged and not
 * sent.
 */
export class Health {
  readonly #checks: readonly HealthCheck[];
  readonly #logger: Logger;

  constructor(checks: readonly HealthCheck[], logger: Logger) {
    this.#checks = [ping, ...checks];
    this.#logger = logger;
  }

  /** All checks of an endpoint. `exclude` omits checks, `verbose` lists them; a failure always lists them. */
  async all(endpoint: HealthEndpoint, query: QueryParameters): Promise<HealthAnswer> {
    const excluded = new Set(query.all('exclude'));
    const checks = this.#of(endpoint).filter((check) => !excluded.has(check.name));
    const outcomes = await Promise.all(checks.map((check) => this.#run(check)));
    const healthy = outcomes.every((outcome) => outcome.healthy);
    if (healthy && !query.has('verbose')) return { code: 200, text: 'ok' };
    const lines = outcomes.map(({ name, healthy: good }) =>
      good ? `[+]${name} ok` : `[-]${name} failed: reason withheld`,
    );
    for (const name of excluded) {
      if (this.#of(endpoint).some((check) => check.name === name)) lines.push(`[+]${name} excluded: ok`);
    }
    const unknown = [...excluded].filter((name) => !this.#of(endpoint).some((check) => check.name === name));
    if (unknown.length > 0) {
      const names = unknown.slice(0, maxNamed).map((name) => JSON.stringify(name.slice(0, maxName)));
      lines.push(`warn: some health checks cannot be excluded: no matches for ${names.sort().join(',')}`);
    }
    lines.push(`${endpoint} check ${healthy ? 'passed' : 'failed'}`);
    return { code: healthy ? 200 : 500, text: `${lines.join('\n')}\n` };
  }

  /** A single check. */
  async one(endpoint: HealthEndpoint, name: string): Promise<HealthAnswer> {
    const check =
      this.#of(endpoint).find((candidate) => candidate.name === name) ??
      this.#checks.find(({ aliases }) => aliases?.[endpoint]?.includes(name));
    if (check === undefined) return { code: 404, text: '404 page not found\n' };
    const { healthy } = await this.#run(check);
    return healthy
      ? { code: 200, text: 'ok' }
      : { code: 500, text: `internal server error: [-]${name} failed: reason withheld\n` };
  }

  #of(endpoint: HealthEndpoint): HealthCheck[] {
    return this.#checks.filter((check) => (check.on ?? ['readyz']).includes(endpoint));
  }

  async #run(check: HealthCheck): Promise<Outcome> {
    try {
      return { name: check.name, healthy: (await check.check()) !== false };
    } catch (err) {
      this.#logger.warn('health check failed', { check: check.name, err });
      return { name: check.name, healthy: false };
    }
  }
}
