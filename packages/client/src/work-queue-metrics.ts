import type { Metrics } from '@keelson/core/runtime';

/** Durations in seconds, from a fraction of a millisecond to minutes. */
const durationBuckets = [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60];

/** The measurements of one queue; times in milliseconds. */
export interface QueueMetrics {
  added(): void;
  began(waitedMs: number): void;
  ended(tookMs: number, failed: boolean): void;
  depth(keys: number): void;
}

/** The metrics that Kubernetes calls `workqueue_*`. */
export function queueMetrics(metrics: Metrics, name: string): QueueMetrics {
  const labels = ['name'];
  const of = { name };
  const depth = metrics.gauge({ name: 'workqueue_depth', help: 'Keys that wait to be processed.', labels });
  const adds = metrics.counter({ name: 'workqueue_adds_total', help: 'Keys added.', labels });
  const retries = metrics.counter({ name: 'workqueue_retries_total', help: 'Keys that failed.', labels });
  const waited = metrics.histogram({
    name: 'workqueue_queue_duration_seconds',
    help: 'Time for which a key waited before it was processed.',
    labels,
    buckets: durationBuckets,
  });
  const worked = metrics.histogram({
    name: 'workqueue_work_duration_seconds',
    help: 'Time of the processing of a key.',
    labels,
    buckets: durationBuckets,
  });
  return {
    added: () => adds.add(1, of),
    began: (waitedMs) => waited.observe(waitedMs / 1000, of),
    ended: (tookMs, failed) => {
      worked.observe(tookMs / 1000, of);
      if (failed) retries.add(1, of);
    },
    depth: (keys) => depth.set(keys, of),
  };
}
