import type { Metrics } from '@keelson/core/runtime';

/** The metrics of a store; each has the schema as its label `store`. */
export interface StoreMetrics {
  notificationSent(): void;
  notificationReceived(): void;
  /** Counts a write that was found by polling although a notification should have reported it. */
  notificationLost(): void;
  listening(connected: boolean): void;
  lag(revisions: number): void;
  batch(writes: number, seconds: number): void;
  resolved(outcome: 'committed' | 'absent' | 'unknown'): void;
  streams(count: number): void;
}

export function storeMetrics(metrics: Metrics, store: string): StoreMetrics {
  const labels = ['store'];
  const own = { store };
  const sent = metrics.counter({
    name: 'keelson_postgres_notifications_sent_total',
    help: 'Notifications sent after writes.',
    labels,
  });
  const received = metrics.counter({
    name: 'keelson_postgres_notifications_received_total',
    help: 'Notifications received.',
    labels,
  });
  const lost = metrics.counter({
    name: 'keelson_postgres_notifications_lost_total',
    help: 'Number of times that polling found writes that a notification should have reported.',
    labels,
  });
  const connected = metrics.gauge({
    name: 'keelson_postgres_listener_connected',
    help: '1 while notifications arrive.',
    labels,
  });
  const lag = metrics.gauge({
    name: 'keelson_postgres_lag_revisions',
    help: 'Revisions that exist and were not yet read for watchers.',
    labels,
  });
  const size = metrics.histogram({
    name: 'keelson_postgres_batch_writes',
    help: 'Writes per batch.',
    labels,
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
  });
  const seconds = metrics.histogram({
    name: 'keelson_postgres_batch_seconds',
    help: 'Duration of a batch of writes, from sending to the answer.',
    labels,
    buckets: [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5],
  });
  const resolved = metrics.counter({
    name: 'keelson_postgres_lost_answers_total',
    help: 'Batches whose answer was lost, by outcome.',
    labels: ['store', 'outcome'],
  });
  const streams = metrics.gauge({ name: 'keelson_postgres_watch_streams', help: 'Open watch streams.', labels });
  return {
    notificationSent: () => sent.add(1, own),
    notificationReceived: () => received.add(1, own),
    notificationLost: () => lost.add(1, own),
    listening: (value) => connected.set(value ? 1 : 0, own),
    lag: (revisions) => lag.set(revisions, own),
    batch: (writes, duration) => {
      size.observe(writes, own);
      seconds.observe(duration, own);
    },
    resolved: (outcome) => resolved.add(1, { store, outcome }),
    streams: (count) => streams.set(count, own),
  };
}
