/** Label values are closed sets (verb, resource, code), never names or namespaces. */
export type Labels = Readonly<Record<string, string>>;

export interface Counter {
  add(value: number, labels?: Labels): void;
}

export interface Gauge {
  set(value: number, labels?: Labels): void;
  add(value: number, labels?: Labels): void;
}

export interface Histogram {
  observe(value: number, labels?: Labels): void;
}

export interface MetricOptions {
  /** Prometheus name with its unit: `keelson_request_duration_seconds`. */
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly string[];
  /** Histograms only. */
  readonly buckets?: readonly number[];
}

/** Where metrics are declared; the same name always gives the same metric. */
export interface Metrics {
  counter(options: MetricOptions): Counter;
  gauge(options: MetricOptions): Gauge;
  histogram(options: MetricOptions): Histogram;
  /** Prometheus text format 0.0.4. */
  text(): Promise<string>;
}

const nothing = { add: () => {}, set: () => {}, observe: () => {} };

export const noMetrics: Metrics = {
  counter: () => nothing,
  gauge: () => nothing,
  histogram: () => nothing,
  text: async () => '',
};
