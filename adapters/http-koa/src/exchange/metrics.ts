import type { Counter, Gauge, Histogram, Labels, Metrics } from '@keelson/core/runtime';
import type { Exchange } from './exchange.ts';

/** Values of the label `verb`; every other verb is counted as `other`. */
const verbs: ReadonlySet<string> = new Set([
  'create',
  'get',
  'list',
  'watch',
  'update',
  'patch',
  'delete',
  'deletecollection',
  'post',
  'put',
  'head',
  'options',
]);

/** Counts of one (verb, resource, code) since the last {@link HttpMetrics.flush}. */
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

/** Metrics of requests. Label values are closed sets: verb, registered plural or `other`, HTTP code. */
export class HttpMetrics {
  readonly #requests: Counter;
  readonly #duration: Histogram;
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
  readonly #cells = new Map<string, Cell>();
  readonly #tallies = new Map<string, EventTally>();

  constructor(metrics: Metrics) {
    const route = ['verb', 'resource'];
    this.#requests = metrics.counter({
      name: 'keelson_http_requests_total',
      help: 'Answered requests.',
      labels: [...route, 'code'],
    });
    this.#duration = metrics.histogram({
      name: 'keelson_http_request_duration_seconds',
      help: 'Time from the arrival of a request to the end of its answer; without watches and connect requests.',
      labels: route,
      buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    });
    this.#sent = metrics.counter({
      name: 'keelson_http_response_bytes_total',
      help: 'Bytes of response bodies before transfer coding.',
      labels: route,
    });
    this.#inFlight = metrics.gauge({
      name: 'keelson_http_requests_in_flight',
      help: 'Requests in progress, without watches and connect requests.',
      labels: ['kind'],
    });
    this.#watches = metrics.gauge({ name: 'keelson_http_watches', help: 'Open watches.' });
    this.#connects = metrics.gauge({
      name: 'keelson_http_connects',
      help: 'Open connect requests, which are forwarded to nodes and pods.',
    });
    this.#events = metrics.counter({
      name: 'keelson_http_watch_events_total',
      help: 'Events sent to watchers.',
      labels: ['resource'],
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
    if (!exchange.longRunning) this.#duration.observe((endedAt - exchange.startedAt) / 1000, cell.route);
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
  eventTally(resource: string): EventTally {
    let tally = this.#tallies.get(resource);
    if (tally === undefined) {
      tally = { labels: { resource }, events: 0 };
      this.#tallies.set(resource, tally);
    }
    return tally;
  }

  /** Reports the collected counts; to be called before the metrics are read. */
  flush(levels: HttpLevels): void {
    for (const cell of this.#cells.values()) {
      if (cell.requests > 0) this.#requests.add(cell.requests, cell.labels);
      if (cell.bytes > 0) this.#sent.add(cell.bytes, cell.route);
      cell.requests = 0;
      cell.bytes = 0;
    }
    for (const tally of this.#tallies.values()) {
      if (tally.events > 0) this.#events.add(tally.events, tally.labels);
      tally.events = 0;
    }
    this.#inFlight.set(levels.reads, { kind: 'read' });
    this.#inFlight.set(levels.mutations, { kind: 'mutate' });
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
    const { verb: asked, isResourceRequest } = exchange.attributes;
    const verb = verbs.has(asked) ? asked : 'other';
    const resource = isResourceRequest ? exchange.metricsResource : 'none';
    const code = exchange.response.statusCode;
    const key = `${verb} ${resource} ${code}`;
    let cell = this.#cells.get(key);
    if (cell === undefined) {
      cell = { labels: { verb, resource, code: String(code) }, route: { verb, resource }, requests: 0, bytes: 0 };
      this.#cells.set(key, cell);
    }
    return cell;
  }
}
