import type { MetricOptions, Metrics } from '@keelson/core';
import * as prom from 'prom-client';

/** Metrics in a registry of its own, so that several planes in one process do not mix. */
export function createPromMetrics(): Metrics {
  const registry = new prom.Registry();
  const made = new Map<string, unknown>();
  const once = <T>(options: MetricOptions, make: () => T): T => {
    if (!made.has(options.name)) made.set(options.name, make());
    return made.get(options.name) as T;
  };
  const base = ({ name, help, labels = [] }: MetricOptions) => ({ name, help, labelNames: [...labels], registers: [registry] });
  return {
    counter: (options) => {
      const counter = once(options, () => new prom.Counter(base(options)));
      return { add: (value, labels = {}) => counter.inc({ ...labels }, value) };
    },
    gauge: (options) => {
      const gauge = once(options, () => new prom.Gauge(base(options)));
      return {
        set: (value, labels = {}) => gauge.set({ ...labels }, value),
        add: (value, labels = {}) => gauge.inc({ ...labels }, value),
      };
    },
    histogram: (options) => {
      const histogram = once(
        options,
        () => new prom.Histogram({ ...base(options), ...(options.buckets ? { buckets: [...options.buckets] } : {}) }),
      );
      return { observe: (value, labels = {}) => histogram.observe({ ...labels }, value) };
    },
    text: () => registry.metrics(),
  };
}
