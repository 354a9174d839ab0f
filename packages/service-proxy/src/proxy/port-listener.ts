import type { Metrics } from '@keelson/core/runtime';

/** Listens at one address for one port of a service. */
export interface PortListener {
  /** Rejects with the error of the system, for example when the address is in use. */
  listen(address: string, port: number): Promise<void>;
  /** Accepts no new connections; resolves when the last connection has ended. */
  close(): Promise<void>;
  /** Stops listening and ends all connections immediately. */
  destroy(): void;
}

/** Limits the number of connections of a proxy. */
export class ProxyLimits {
  readonly #max: number;
  #used = 0;

  constructor(max: number) {
    this.#max = max;
  }

  take(): boolean {
    if (this.#used >= this.#max) return false;
    this.#used += 1;
    return true;
  }

  release(): void {
    this.#used -= 1;
  }
}

export type ProxyFailure = 'accept' | 'limit' | 'no endpoints' | 'connect' | 'listen';

/** The metrics of a proxy. */
export class ProxyMetrics {
  readonly #open;
  readonly #total;
  readonly #failures;

  constructor(metrics: Metrics) {
    this.#open = metrics.gauge({
      name: 'keelson_service_proxy_connections',
      help: 'open connections and flows of services',
      labels: ['protocol'],
    });
    this.#total = metrics.counter({
      name: 'keelson_service_proxy_connections_total',
      help: 'accepted connections and flows of services',
      labels: ['protocol'],
    });
    this.#failures = metrics.counter({
      name: 'keelson_service_proxy_failures_total',
      help: 'connections that were rejected and addresses that could not be used, by reason',
      labels: ['reason'],
    });
  }

  opened(protocol: string): void {
    this.#open.add(1, { protocol });
    this.#total.add(1, { protocol });
  }

  closed(protocol: string): void {
    this.#open.add(-1, { protocol });
  }

  failed(reason: ProxyFailure): void {
    this.#failures.add(1, { reason });
  }
}
