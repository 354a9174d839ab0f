import { isMainThread } from 'node:worker_threads';
import type { Labels, MetricOptions, Metrics } from '@keelson/core/runtime';
import type { Metric } from 'prom-client';

/** One value of a metric in the form of prom-client. */
export interface MetricSample {
  readonly metricName?: string;
  readonly labels: Record<string, string | number>;
  readonly value: number;
}

/** A metric with its values. */
export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly values: readonly MetricSample[];
  /** How values of several threads are combined. */
  readonly aggregator: 'sum';
}

/** Metrics that can be combined with those of other threads. */
export interface PromMetrics extends Metrics {
  families(): Promise<readonly MetricFamily[]>;
}

/**
 * The values of one metric by their labels. Values are first looked up by the identity of the labels object: creating a
 * key from the labels took 3 % of the CPU time of a pod create.
 */
export class MetricSeries<V> {
  readonly #names: readonly string[];
  readonly #make: () => V;
  readonly #byText = new Map<string, { readonly labels: Record<string, string>; readonly value: V }>();
  readonly #byObject = new WeakMap<Labels, V>();

  constructor(names: readonly string[], make: () => V) {
    this.#names = names;
    this.#make = make;
    // A metric without labels is reported from the start with the value 0.
    if (names.length === 0) this.of({});
  }

  of(labels: Labels): V {
    let value = this.#byObject.get(labels);
    if (value === undefined) {
      value = this.#find(labels);
      this.#byObject.set(labels, value);
    }
    return value;
  }

  /** All values with their labels. */
  all(): Iterable<{ readonly labels: Record<string, string>; readonly value: V }> {
    return this.#byText.values();
  }

  #find(labels: Labels): V {
    const key = this.#names.map((name) => labels[name] ?? '').join('\0');
    let found = this.#byText.get(key);
    if (found === undefined) {
      const own = Object.fromEntries(
        this.#names.flatMap((name) => (labels[name] === undefined ? [] : [[name, labels[name]]])),
      );
      found = { labels: own, value: this.#make() };
      this.#byText.set(key, found);
    }
    return found.value;
  }
}

/** Observations counted in buckets. */
export class Distribution {
  readonly #bounds: readonly number[];
  /** One element more than `bounds`: the last one counts values above all bounds. */
  readonly #counts: number[];
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Array<number>(bounds.length + 1).fill(0);
  }

  observe(value: number): void {
    let at = 0;
    while (at < this.#bounds.length && value > (this.#bounds[at] as number)) at += 1;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#sum += value;
  }

  samples(name: string, labels: Record<string, string>): MetricSample[] {
    const samples: MetricSample[] = [];
    let count = 0;
    for (const [at, own] of this.#counts.entries()) {
      count += own;
      samples.push({
        metricName: `${name}_bucket`,
        labels: { le: this.#bounds[at] ?? '+Inf', ...labels },
        value: count,
      });
    }
    samples.push({ metricName: `${name}_sum`, labels, value: this.#sum });
    samples.push({ metricName: `${name}_count`, labels, value: count });
    return samples;
  }
}

const noLabels: Labels = {};
const usualBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

interface Amount {
  value: number;
}

/**
 * Metrics with a registry per plane, so that several planes in one process do not share values. Values are counted here
 * and formatted by prom-client, which is loaded when the text is requested: loading it is a twentieth of a server's
 * start.
 */
export function createPromMetrics(): PromMetrics {
  const registered: (Pick<MetricFamily, 'name'> & { get(): Promise<MetricFamily> })[] = [];
  const updates: (() => void)[] = [];
  const made = new Map<string, unknown>();
  const once = <T>(options: MetricOptions, make: () => T): T => {
    if (!made.has(options.name)) made.set(options.name, make());
    return made.get(options.name) as T;
  };
  const register = (
    { name, help }: MetricOptions,
    type: 'counter' | 'gauge' | 'histogram',
    samples: () => MetricSample[],
  ) => {
    registered.push({ name, get: async () => ({ name, help, type, values: samples(), aggregator: 'sum' }) });
  };
  const amounts = (options: MetricOptions, type: 'counter' | 'gauge') =>
    once(options, () => {
      const series = new MetricSeries<Amount>(options.labels ?? [], () => ({ value: 0 }));
      register(options, type, () => Array.from(series.all(), ({ labels, value: { value } }) => ({ labels, value })));
      return {
        add: (value: number, labels = noLabels) => {
          series.of(labels).value += value;
        },
        set: (value: number, labels = noLabels) => {
          series.of(labels).value = value;
        },
      };
    });
  const reached: ProcessTimes = { cpuSeconds: 0, activeSeconds: 0 };
  const own: PromMetrics = {
    counter: (options) => amounts(options, 'counter'),
    gauge: (options) => amounts(options, 'gauge'),
    histogram: (options) =>
      once(options, () => {
        const series = new MetricSeries(options.labels ?? [], () => new Distribution(options.buckets ?? usualBuckets));
        register(options, 'histogram', () =>
          Array.from(series.all(), ({ labels, value }) => value.samples(options.name, labels)).flat(),
        );
        return { observe: (value: number, labels = noLabels) => series.of(labels).observe(value) };
      }),
    beforeRead: (update) => updates.push(update),
    families: () => {
      for (const update of updates) update();
      return Promise.all(registered.map((metric) => metric.get()));
    },
    text: async () => {
      const { Registry } = await import('prom-client');
      for (const update of updates) update();
      const registry = new Registry();
      // The type assertion is valid, because the registry reads only `name` and `get` of a metric.
      for (const metric of registered) registry.registerMetric(metric as unknown as Metric);
      return registry.metrics();
    },
  };
  updates.push(() => measureProcess(own, reached));
  return own;
}

/** Values of counters of the process, at the last update. */
interface ProcessTimes {
  cpuSeconds: number;
  activeSeconds: number;
}

/**
 * Updates the metrics of the process, under the names of prom-client. They cost nothing until their text is requested.
 * Those of the whole process are reported by the main thread, the others are sums over all threads.
 */
function measureProcess(metrics: Metrics, reached: ProcessTimes): void {
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed, external } = process.memoryUsage();
  const times = {
    cpuSeconds: (user + system) / 1e6,
    activeSeconds: performance.eventLoopUtilization().active / 1000,
  };
  const loop = metrics.counter({
    name: 'nodejs_eventloop_active_seconds_total',
    help: 'Time of the event loop at work.',
  });
  loop.add(times.activeSeconds - reached.activeSeconds);
  metrics.gauge({ name: 'nodejs_heap_size_used_bytes', help: 'Memory of JavaScript objects.' }).set(heapUsed);
  metrics.gauge({ name: 'nodejs_external_memory_bytes', help: 'Memory outside of the heap.' }).set(external);
  if (isMainThread) {
    const cpu = metrics.counter({ name: 'process_cpu_seconds_total', help: 'CPU time of the process.' });
    cpu.add(times.cpuSeconds - reached.cpuSeconds);
    const start = metrics.gauge({ name: 'process_start_time_seconds', help: 'Start of the process, since 1970.' });
    start.set(Math.round(performance.timeOrigin / 1000));
    metrics.gauge({ name: 'process_resident_memory_bytes', help: 'Memory of the process in RAM.' }).set(rss);
  }
  Object.assign(reached, times);
}

/** The text of the metrics of several threads: values with the same labels are added up. */
export async function metricsText(threads: readonly (readonly MetricFamily[])[]): Promise<string> {
  const { AggregatorRegistry } = await import('prom-client');
  return AggregatorRegistry.aggregate(threads as Parameters<typeof AggregatorRegistry.aggregate>[0]).metrics();
}
