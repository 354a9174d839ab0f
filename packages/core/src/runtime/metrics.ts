/** Label values are closed sets (verb, resource, code), never names or namespaces. */
export type Labels = Readonly<Record<string, string>>;

/** A sum that only rises. */
export interface Counter {
  add(value: number, labels?: Labels): void;
}

/** A value that rises and falls. */
export interface Gauge {
  set(value: number, labels?: Labels): void;
  add(value: number, labels?: Labels): void;
}

/** Observations, counted in buckets. */
export interface Histogram {
  observe(value: number, labels?: Labels): void;
}

/** Name, help text and label names of a metric. */
export interface MetricOptions {
  /** Prometheus name with its unit: `keelson_request_duration_seconds`. */
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly string[];
  /** Upper bounds of the buckets; for histograms only. */
  readonly buckets?: readonly number[];
}

/** Where metrics are declared; the same name always gives the same metric. */
export interface Metrics {
  counter(options: MetricOptions): Counter;
  gauge(options: MetricOptions): Gauge;
  histogram(options: MetricOptions): Histogram;
  /**
   * Registers a function that is called before values are read, to report values that are counted elsewhere. Absent
   * when values are read by `text` only.
   */
  beforeRead?(report: () => void): void;
  /** Prometheus text format 0.0.4. */
  text(): Promise<string>;
}

const nothing = { add: () => {}, set: () => {}, observe: () => {} };

/** Metrics that are not recorded. */
export const noMetrics: Metrics = {
  counter: () => nothing,
  gauge: () => nothing,
  histogram: () => nothing,
  text: async () => '',
};
