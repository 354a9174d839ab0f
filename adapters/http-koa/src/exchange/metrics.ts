import type { Counter, Gauge, Histogram, Labels, Metrics } from '@keelson/core';
import type { Exchange } from './exchange.ts';

/** Verbs that appear as label values; anything else a client invents is `other`. */
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

/** What happened with one (verb, resource, code) since the last {@link HttpMetrics.flush}. */
interface Cell {
  readonly labels: Labels;
  readonly route: Labels;
  requests: number;
  bytes: number;
}

/** Events sent to the watchers of one resource since the last {@link HttpMetrics.flush}; whoever sends adds to it. */
export interface EventTally {
  readonly labels: Labels;
  events: number;
}

/** Levels read when metrics are. */
export interface HttpLevels {
  readonly reads: number;
  readonly mutations: number;
  readonly watches: number;
  readonly connects: number;
}

/** What is measured about requests. Label values are closed sets: verb, registered plural or `other`, HTTP code. */
export class HttpMetrics {
  readonly #requests: Counter;
  readonly #duration: Histogram;
  readonly #sent: Counter;
  readonly #inFlight: Gauge;
  readonly #watches: Gauge;
  readonly #connects: Gauge;
  readonly #events: Counter;
  readonly #rejected: Counter;
  /** Counts are gathered here and handed on when metrics are read, because a labelled counter costs a hash per step. */
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
      help: 'Time from the arrival of a request to the end of its answer; watches and calls that are passed on are not in it.',
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
      help: 'Requests being worked on, watches and calls that are passed on apart.',
      labels: ['kind'],
    });
    this.#watches = metrics.gauge({ name: 'keelson_http_watches', help: 'Open watches.' });
    this.#connects = metrics.gauge({
      name: 'keelson_http_connects',
      help: 'Open calls that are passed on to nodes and pods.',
    });
    this.#events = metrics.counter({
      name: 'keelson_http_watch_events_total',
      help: 'Events sent to watchers.',
      labels: ['resource'],
    });
    this.#rejected = metrics.counter({
      name: 'keelson_http_requests_rejected_total',
      help: 'Requests answered with 429: too many of their kind in flight, or the process too far behind (overload).',
      labels: ['kind'],
    });
  }

  finished(exchange: Exchange, endedAt: number): void {
    const cell = this.#cell(exchange);
    cell.requests += 1;
    cell.bytes += exchange.sentBytes;
    if (!exchange.longRunning) this.#duration.observe((endedAt - exchange.startedAt) / 1000, cell.route);
  }

  rejected(kind: 'read' | 'mutate' | 'watch' | 'connect' | 'overload'): void {
    this.#rejected.add(1, { kind });
  }

  /** The same for all watchers of a resource. */
  eventTally(resource: string): EventTally {
    let tally = this.#tallies.get(resource);
    if (tally === undefined) {
      tally = { labels: { resource }, events: 0 };
      this.#tallies.set(resource, tally);
    }
    return tally;
  }

  /** Hands on what was gathered; to be called before the metrics are read. */
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
