import type { Labels, Metrics } from '@keelson/core/runtime';

/** Adds fixed labels to metrics, so that several users of a metric do not collide. */
export function labelledMetrics(inner: Metrics, fixed: Labels): Metrics {
  const names = Object.keys(fixed);
  const withNames = <O extends { readonly labels?: readonly string[] }>(options: O) => ({
    ...options,
    labels: [...(options.labels ?? []), ...names],
  });
  // Most calls have no labels of their own and share one object.
  const all = (labels: Labels | undefined) => (labels === undefined ? fixed : { ...labels, ...fixed });
  return {
    counter: (options) => {
      const counter = inner.counter(withNames(options));
      return { add: (value, labels) => counter.add(value, all(labels)) };
    },
    gauge: (options) => {
      const gauge = inner.gauge(withNames(options));
      return {
        set: (value, labels) => gauge.set(value, all(labels)),
        add: (value, labels) => gauge.add(value, all(labels)),
      };
    },
    histogram: (options) => {
      const histogram = inner.histogram(withNames(options));
      return { observe: (value, labels) => histogram.observe(value, all(labels)) };
    },
    beforeRead: (report) => inner.beforeRead?.(report),
    text: () => inner.text(),
  };
}
