import type { Labels, MetricOptions, Metrics } from '@keelson/core';
import type { Metric } from 'prom-client';
import { Distribution, type MetricSample, MetricSeries } from './metric-series.ts';

const noLabels: Labels = {};
const usualBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

interface Amount {
  value: number;
}

/**
 * Metrics in a registry of its own, so that several planes in one process do not mix. Values are counted here and
 * written out by prom-client, which is loaded when somebody asks for the text: loading it is a twentieth of a server's
 * start.
 */
export function createPromMetrics(): Metrics {
  const registered: Metric[] = [];
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
    const metric = { name, help, type, get: async () => ({ name, help, type, values: samples(), aggregator: 'sum' }) };
    // A registry asks its metrics for nothing else than their name and `get`.
    registered.push(metric as unknown as Metric);
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
  return {
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
    text: async () => {
      const { Registry } = await import('prom-client');
      const registry = new Registry();
      for (const metric of registered) registry.registerMetric(metric);
      return registry.metrics();
    },
  };
}
