import type { RequestAttributes } from '@keelson/core/internal';
import type { Counter, Gauge, Histogram, Labels, Metrics } from '@keelson/core/runtime';
import type { Exchange } from './exchange.ts';

/** Values of the label `verb`, those of kube-apiserver; every other verb is counted as `other`. */
const verbs: ReadonlyMap<string, string> = new Map([
  ['create', 'POST'],
  ['get', 'GET'],
  ['list', 'LIST'],
  ['watch', 'WATCH'],
  ['update', 'PUT'],
  ['patch', 'PATCH'],
  ['delete', 'DELETE'],
  ['deletecollection', 'DELETECOLLECTION'],
  ['post', 'POST'],
  ['put', 'PUT'],
  ['head', 'HEAD'],
  ['options', 'OPTIONS'],
]);

/** Buckets of durations in seconds. Alerts for kube-apiserver use 1, 5 and 30. */
const durations = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** The resource of a request in metrics. */
export interface MetricsResource {
  /** Equal for equal labels. */
  readonly key: string;
  readonly labels: { readonly group: string; readonly version: string; readonly resource: string };
}

/** The resource of a registered kind in metrics. */
export function metricsResource(group: string, version: string, resource: string): MetricsResource {
  return { key: `${group}/${version}/${resource}`, labels: { group, version, resource } };
}

/** Resource of requests to paths of the resource API at which nothing is registered, and of all other requests. */
const otherResource = metricsResource('', '', 'other');
const noResource = metricsResource('', '', '');

/** Counts of requests with the same labels since the last {@link HttpMetrics.flush}. */
interface Cell {
  readonly labels: Labels;
  readonly route: Labels;
  requests: number;
  bytes: number;
}

/** Number of events sent to the watchers of one resource since the last {@link HttpMetrics.flush}. */
export interface EventTally {
  readonly labels: Labels;
  events: number;
}

/** Numbers of requests and of seats in use, determined when the metrics are read. */
export interface HttpLevels {
  readonly reads: number;
  readonly mutations: number;
  readonly watches: number;
  readonly connects: number;
  readonly priorities: readonly PriorityLevels[];
}

/** Seats of a priority level, those in use, and the number of requests that wait for one. */
export interface PriorityLevels {
  readonly name: string;
  readonly seats: number;
  readonly running: number;
  readonly queued: number;
}

/**
 * Metrics of requests. Label values are closed sets: verb, registered resource or `other`, its subresources, scope,
 * HTTP code. Those that kube-apiserver has, too, have its names, so that dashboards and alerts for it can be used.
 */
export class HttpMetrics {
  readonly #requests: Counter;
  readonly #duration: Histogram;
  readonly #sliDuration: Histogram;
  readonly #sent: Counter;
  readonly #inFlight: Gauge;
  readonly #watches: Gauge;
  readonly #connects: Gauge;
  readonly #events: Counter;
  readonly #rejected: Counter;
  readonly #flowSeats: Gauge;
  readonly #flowRunning: Gauge;
  readonly #flowQueued: Gauge;
  readonly #flowRejected: Counter;
  readonly #flowWait: Histogram;
  /**
   * Counts are collected here and reported when the metrics are read: a labelled counter computes a hash for every
   * increment.
   */
  readonly #cells = new Map<string, Map<string, Cell>>();
  readonly #tallies = new Map<string, EventTally>();

  constructor(metrics: Metrics) {
    const route = ['verb', 'group', 'version', 'resource', 'subresource', 'scope'];
    this.#requests = metrics.counter({
      name: 'apiserver_request_total',
      help: 'Answered requests.',
      labels: ['verb', 'group', 'version', 'resource', 'subresource', 'scope', 'code'],
    });
    this.#duration = metrics.histogram({
      name: 'apiserver_request_duration_seconds',
      help: 'Time from the arrival of a request to the end of its answer; without watches and connect requests.',
      labels: route,
      buckets: durations,
    });
    this.#sliDuration = metrics.histogram({
      name: 'apiserver_request_sli_duration_seconds',
      help: 'The same without the time in which requests waited for their turn or for admission webhooks.',
      labels: route,
      buckets: durations,
    });
    this.#sent = metrics.counter({
      name: 'keelson_http_response_bytes_total',
      help: 'Bytes of response bodies before transfer coding.',
      labels: route,
    });
    this.#inFlight = metrics.gauge({
      name: 'apiserver_current_inflight_requests',
      help: 'Requests in progress, without watches and connect requests.',
      labels: ['request_kind'],
    });
    this.#watches = metrics.gauge({ name: 'keelson_http_watches', help: 'Open watches.' });
    this.#connects = metrics.gauge({
      name: 'keelson_http_connects',
      help: 'Open connect requests, which are forwarded to nodes and pods.',
    });
    this.#events = metrics.counter({
      name: 'apiserver_watch_events_total',
      help: 'Events sent to watchers.',
      labels: ['group', 'version', 'resource'],
    });
    this.#rejected = metrics.counter({
      name: 'keelson_http_requests_rejected_total',
      help: 'Requests answered with 429: too many watches or connect requests, queue full, or event loop delay too long.',
      labels: ['kind'],
    });
    const level = ['priority_level'];
    this.#flowSeats = metrics.gauge({
      name: 'apiserver_flowcontrol_nominal_limit_seats',
      help: 'Requests that a priority level may run at the same time when all levels are busy.',
      labels: level,
    });
    this.#flowRunning = metrics.gauge({
      name: 'apiserver_flowcontrol_current_executing_requests',
      help: 'Running requests of a priority level.',
      labels: level,
    });
    this.#flowQueued = metrics.gauge({
      name: 'apiserver_flowcontrol_current_inqueue_requests',
      help: 'Requests that wait in the queues of a priority level.',
      labels: level,
    });
    this.#flowRejected = metrics.counter({
      name: 'apiserver_flowcontrol_rejected_requests_total',
      help: 'Requests answered with 429 because their queue was full or their wait too long.',
      labels: [...level, 'reason'],
    });
    this.#flowWait = metrics.histogram({
      name: 'apiserver_flowcontrol_request_wait_duration_seconds',
      help: 'Time that queued requests have waited.',
      labels: level,
      buckets: [0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15],
    });
  }

  finished(exchange: Exchange, endedAt: number): void {
    const cell = this.#cell(exchange);
    cell.requests += 1;
    cell.bytes += exchange.sentBytes;
    if (exchange.longRunning) return;
    const ms = endedAt - exchange.startedAt;
    this.#duration.observe(ms / 1000, cell.route);
    this.#sliDuration.observe(Math.max(0, ms - exchange.waitedMs) / 1000, cell.route);
  }

  rejected(kind: 'queue' | 'watch' | 'connect' | 'overload'): void {
    this.#rejected.add(1, { kind });
  }

  flowRejected(level: string, reason: 'queue-full' | 'time-out'): void {
    this.#flowRejected.add(1, { priority_level: level, reason });
  }

  flowWaited(level: string, ms: number): void {
    this.#flowWait.observe(ms / 1000, { priority_level: level });
  }

  /** The tally that all watchers of a resource share. */
  eventTally(resource: MetricsResource = otherResource): EventTally {
    let tally = this.#tallies.get(resource.key);
    if (tally === undefined) {
      tally = { labels: resource.labels, events: 0 };
      this.#tallies.set(resource.key, tally);
    }
    return tally;
  }

  /** Reports the collected counts; to be called before the metrics are read. */
  flush(levels: HttpLevels): void {
    for (const cells of this.#cells.values()) {
      for (const cell of cells.values()) {
        if (cell.requests > 0) this.#requests.add(cell.requests, cell.labels);
        if (cell.bytes > 0) this.#sent.add(cell.bytes, cell.route);
        cell.requests = 0;
        cell.bytes = 0;
      }
    }
    for (const tally of this.#tallies.values()) {
      if (tally.events > 0) this.#events.add(tally.events, tally.labels);
      tally.events = 0;
    }
    this.#inFlight.set(levels.reads, { request_kind: 'readOnly' });
    this.#inFlight.set(levels.mutations, { request_kind: 'mutating' });
    this.#watches.set(levels.watches);
    this.#connects.set(levels.connects);
    for (const { name, seats, running, queued } of levels.priorities) {
      const labels = { priority_level: name };
      this.#flowSeats.set(seats, labels);
      this.#flowRunning.set(running, labels);
      this.#flowQueued.set(queued, labels);
    }
  }

  #cell(exchange: Exchange): Cell {
    const { attributes, metricsSubresource: subresource } = exchange;
    const resource = attributes.isResourceRequest ? (exchange.metricsResource ?? otherResource) : noResource;
    const code = exchange.response.statusCode;
    const scope = scopeOf(attributes);
    let cells = this.#cells.get(resource.key);
    if (cells === undefined) {
      cells = new Map();
      this.#cells.set(resource.key, cells);
    }
    const verb = verbs.get(attributes.verb) ?? 'other';
    const key = `${verb} ${code} ${scope} ${subresource}`;
    let cell = cells.get(key);
    if (cell === undefined) {
      const route = { verb, ...resource.labels, subresource, scope };
      cell = { labels: { ...route, code: String(code) }, route, requests: 0, bytes: 0 };
      cells.set(key, cell);
    }
    return cell;
  }
}

function scopeOf({ isResourceRequest, verb, name, namespace }: RequestAttributes): string {
  if (!isResourceRequest) return '';
  if (name !== '' || verb === 'create') return 'resource';
  return namespace === '' ? 'cluster' : 'namespace';
}
