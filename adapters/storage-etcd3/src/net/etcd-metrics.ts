import type { Clock, Counter, Histogram, Metrics } from '@keelson/core/runtime';

/** All metrics of the adapter. Label values are methods and error codes, both closed sets. */
export class EtcdMetrics {
  readonly #requests: Counter;
  readonly #seconds: Histogram;
  readonly #events: Counter;
  readonly #connects: Counter;
  readonly #progress: Counter;
  readonly #catchUps: Counter;
  readonly #leases: Counter;
  readonly #clock: Clock;

  constructor(metrics: Metrics, clock: Clock) {
    this.#clock = clock;
    this.#requests = metrics.counter({
      name: 'keelson_etcd_requests_total',
      help: 'Calls to etcd by method and outcome.',
      labels: ['method', 'code'],
    });
    this.#seconds = metrics.histogram({
      name: 'keelson_etcd_request_duration_seconds',
      help: 'Duration of calls to etcd, retries included.',
      labels: ['method'],
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    });
    this.#events = metrics.counter({ name: 'keelson_etcd_watch_events_total', help: 'Changes received from etcd.' });
    this.#connects = metrics.counter({
      name: 'keelson_etcd_watch_streams_total',
      help: 'Watch streams opened at etcd, including those that replace a broken one.',
    });
    this.#progress = metrics.counter({
      name: 'keelson_etcd_progress_requests_total',
      help: 'Number of times that progress of a watch was requested from etcd.',
      labels: ['how'],
    });
    this.#catchUps = metrics.counter({
      name: 'keelson_etcd_watch_catch_ups_total',
      help: 'Number of times that a watch read history on its own, outside the shared window.',
    });
    this.#leases = metrics.counter({ name: 'keelson_etcd_leases_total', help: 'Leases granted.' });
  }

  /** Starts a timer. The caller calls the returned function with `ok` or the error code. */
  request(path: string): (code: string) => void {
    const method = path.slice(path.lastIndexOf('/') + 1);
    const begin = this.#clock.monotonic();
    return (code) => {
      this.#requests.add(1, { method, code });
      this.#seconds.observe((this.#clock.monotonic() - begin) / 1000, { method });
    };
  }

  events(count: number): void {
    this.#events.add(count);
  }

  connected(): void {
    this.#connects.add(1);
  }

  progress(how: 'request' | 'cookie'): void {
    this.#progress.add(1, { how });
  }

  catchUp(): void {
    this.#catchUps.add(1);
  }

  lease(): void {
    this.#leases.add(1);
  }
}
