import type { Metrics } from '../runtime/metrics.ts';

/** What the cache of one kind tells about itself. */
export interface CacheMetrics {
  /** An event was applied; the cache now holds so many objects. */
  applied(objects: number): void;
  objects(count: number): void;
  watchers(difference: number): void;
  /** A watch asked for changes that the window no longer has. */
  leftWindow(): void;
}

const untold: CacheMetrics = { applied: () => {}, objects: () => {}, watchers: () => {}, leftWindow: () => {} };

/** `resource` is `plural` or `plural.group`. */
export function cacheMetricsOf(metrics: Metrics | undefined, resource: string): CacheMetrics {
  if (metrics === undefined) return untold;
  const labels = { resource };
  const events = metrics.counter({
    name: 'keelson_watch_cache_events_total',
    help: 'Changes applied to the watch cache',
    labels: ['resource'],
  });
  const objects = metrics.gauge({
    name: 'keelson_watch_cache_objects',
    help: 'Objects in the watch cache',
    labels: ['resource'],
  });
  const watchers = metrics.gauge({
    name: 'keelson_watch_cache_watchers',
    help: 'Watches that are open on the watch cache',
    labels: ['resource'],
  });
  const history = metrics.counter({
    name: 'keelson_watch_cache_history_reads_total',
    help: 'Watches that read from the history of the store because the window of the cache no longer had what they asked for',
    labels: ['resource'],
  });
  let last = -1;
  const setObjects = (count: number) => {
    if (count === last) return;
    last = count;
    objects.set(count, labels);
  };
  return {
    applied(count) {
      events.add(1, labels);
      setObjects(count);
    },
    objects: setObjects,
    watchers: (difference) => watchers.add(difference, labels),
    leftWindow: () => history.add(1, labels),
  };
}
