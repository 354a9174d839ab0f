import type { Labels, MetricOptions, Metrics } from '@keelson/core/runtime';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';

type MetricType = 'counter' | 'gauge' | 'histogram';

/** Metrics in a registry of their own, so that several agents in one process do not share values. */
export function createTextMetrics(): Metrics {
  const registry = new Registry();
  const created = new Map<string, { readonly type: MetricType; readonly metric: unknown }>();

  /** Creates the metric, or returns the one of the same name. @throws when that one has another type */
  function once<M>(type: MetricType, { name }: MetricOptions, create: () => M): M {
    const entry = created.get(name) ?? { type, metric: create() };
    if (entry.type !== type) throw new Error(`the metric ${name} is a ${entry.type}, not a ${type}`);
    created.set(name, entry);
    return entry.metric as M;
  }

  const settings = ({ name, help, labels = [] }: MetricOptions) => ({
    ...{ name, help, labelNames: labels },
    registers: [registry],
  });

  return {
    counter: (options) =>
      once('counter', options, () => {
        const counter = new Counter(settings(options));
        return { add: (value: number, labels?: Labels) => counter.inc(allLabels(options, labels), value) };
      }),
    gauge: (options) =>
      once('gauge', options, () => {
        const gauge = new Gauge(settings(options));
        return {
          add: (value: number, labels?: Labels) => gauge.inc(allLabels(options, labels), value),
          set: (value: number, labels?: Labels) => gauge.set(allLabels(options, labels), value),
        };
      }),
    histogram: (options) =>
      once('histogram', options, () => {
        const { buckets } = options;
        const histogram = new Histogram({ ...settings(options), ...(buckets && { buckets: [...buckets] }) });
        return { observe: (value: number, labels?: Labels) => histogram.observe(allLabels(options, labels), value) };
      }),
    text: () => registry.metrics(),
  };
}

/** Every label of the metric, because an absent label would be another series than an empty one. */
function allLabels({ labels: names = [] }: MetricOptions, labels: Labels | undefined): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, labels?.[name] ?? '']));
}
