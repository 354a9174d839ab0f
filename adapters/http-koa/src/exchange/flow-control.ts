import type { UserInfo } from '@keelson/core';
import type { RequestAttributes } from '@keelson/core/internal';
import type { Clock } from '@keelson/core/runtime';
import type { HttpLevels, HttpMetrics } from './metrics.ts';
import type { FlowControlOptions, FlowSchema, HttpLimits, PriorityLevel } from './options.ts';

/** The built-in priority levels: those of kube-apiserver, with its shares. */
export const defaultLevels: readonly PriorityLevel[] = [
  { name: 'leader-election', shares: 10 },
  { name: 'system', shares: 30 },
  { name: 'workload-high', shares: 40 },
  { name: 'workload-low', shares: 100 },
  { name: 'global-default', shares: 20 },
  { name: 'catch-all', shares: 5 },
];

/** Name of the priority level whose requests are not limited. */
const exempt = 'exempt';

/** The built-in flow schemas; a request belongs to the first that matches. The last one matches every request. */
export const defaultSchemas: readonly FlowSchema[] = [
  { name: 'exempt', level: exempt, groups: ['system:masters'] },
  { name: 'probes', level: exempt, paths: ['/healthz', '/livez', '/readyz'] },
  {
    name: 'leases',
    level: 'leader-election',
    groups: ['system:authenticated'],
    resources: ['leases.coordination.k8s.io'],
  },
  { name: 'system-nodes', level: 'system', groups: ['system:nodes'] },
  { name: 'kube-system-service-accounts', level: 'workload-high', groups: ['system:serviceaccounts:kube-system'] },
  { name: 'service-accounts', level: 'workload-low', groups: ['system:serviceaccounts'] },
  { name: 'global-default', level: 'global-default', groups: ['system:authenticated'] },
  { name: 'catch-all', level: 'catch-all' },
];

const reading: ReadonlySet<string> = new Set(['get', 'list', 'head', 'watch', 'proxy']);
const watchFlow = 'watch';
const connectFlow = 'connect';

/** What an admitted request occupies until it ends. Owned by {@link FlowControl}. */
export interface Seat {
  readonly kind: 'read' | 'mutate' | typeof watchFlow | typeof connectFlow;
  readonly user: string;
  /** Undefined for requests that no priority level limits. */
  readonly flow: Flow | undefined;
}

/** The requests of one caller within a level. */
interface Flow {
  readonly level: Level;
  readonly key: string;
  running: number;
  readonly waiting: Waiting[];
}

interface Waiting {
  readonly seat: Seat;
  readonly since: number;
  /** Ends the wait of the request, with undefined when the request is rejected. */
  readonly resolve: (seat: Seat | undefined) => void;
  readonly cancelTimer: () => void;
}

/** The state of a priority level. */
class Level {
  readonly name: string;
  /** Nominal number of seats of the level. Up to half of them are lent to other levels while they are free. */
  readonly seats: number;
  readonly flows = new Map<string, Flow>();
  /** Flows with waiting requests, in the order of their turns. */
  readonly turns: Flow[] = [];
  running = 0;
  queued = 0;

  constructor(name: string, seats: number) {
    this.name = name;
    this.seats = seats;
  }

  get reserved(): number {
    return Math.max(0, Math.ceil(this.seats / 2) - this.running);
  }

  flow(key: string): Flow {
    let found = this.flows.get(key);
    if (found === undefined) {
      found = { level: this, key, running: 0, waiting: [] };
      this.flows.set(key, found);
    }
    return found;
  }
}

const has = (listed: readonly string[] | undefined, value: string): boolean =>
  listed === undefined || listed.includes(value) || listed.includes('*');

function matchesRequest(schema: FlowSchema, attributes: RequestAttributes): boolean {
  const { verb, isResourceRequest, path, resource, apiGroup, namespace } = attributes;
  if (!has(schema.verbs, verb)) return false;
  if (schema.paths !== undefined) {
    if (isResourceRequest) return false;
    return schema.paths.some((prefix) => path === prefix || path.startsWith(`${prefix}/`) || prefix === '*');
  }
  if (schema.resources !== undefined || schema.namespaces !== undefined) {
    if (!isResourceRequest || !has(schema.namespaces, namespace)) return false;
    return has(schema.resources, apiGroup === '' ? resource : `${resource}.${apiGroup}`);
  }
  return true;
}

function matchesUser({ users, groups }: FlowSchema, user: UserInfo): boolean {
  if (users === undefined && groups === undefined) return true;
  return (users?.includes(user.name) ?? false) || (groups?.some((group) => user.groups.includes(group)) ?? false);
}

/**
 * Limits the number of requests in progress, fairly: see docs/reference/api-rules.md#flow-control. A request belongs to
 * a priority level and, within it, to the flow of its caller. A flow may occupy as many seats of its level as are still
 * free; so one caller alone gets at most half of them, and a caller without running requests always finds one or is
 * next in turn. Requests beyond that wait in the queue of their flow, and flows with waiting requests take turns.
 *
 * Watches and connect requests occupy no seat, because they last long. Their numbers are limited per user and in total.
 */
export class FlowControl {
  readonly #limits: HttpLimits;
  readonly #options: FlowControlOptions;
  readonly #clock: Clock;
  readonly #metrics: HttpMetrics;
  readonly #levels = new Map<string, Level>();
  readonly #schemas: readonly FlowSchema[];
  /** Flow schemas by user object: the user of a connection is the same object for every request. */
  readonly #schemasOf = new WeakMap<UserInfo, readonly FlowSchema[]>();
  readonly #counts = { read: 0, mutate: 0, watch: 0, connect: 0 };
  readonly #perUser = { watch: new Map<string, number>(), connect: new Map<string, number>() };
  #running = 0;
  #queued = 0;

  constructor(limits: HttpLimits, options: FlowControlOptions, clock: Clock, metrics: HttpMetrics) {
    this.#limits = limits;
    this.#options = options;
    this.#clock = clock;
    this.#metrics = metrics;
    this.#schemas = [...(options.schemas ?? []), ...defaultSchemas];
    const own = options.levels ?? [];
    const levels = [...own, ...defaultLevels.filter(({ name }) => !own.some((level) => level.name === name))];
    const shares = levels.reduce((sum, level) => sum + level.shares, 0);
    for (const level of levels) {
      const seats = Math.max(1, Math.ceil((limits.requestsInFlight * level.shares) / shares));
      this.#levels.set(level.name, new Level(level.name, seats));
    }
  }

  get levels(): HttpLevels {
    const { read, mutate, watch, connect } = this.#counts;
    return {
      reads: read,
      mutations: mutate,
      watches: watch,
      connects: connect,
      priorities: [...this.#levels.values()].map(({ name, seats, running, queued }) => ({
        name,
        seats,
        running,
        queued,
      })),
    };
  }

  /**
   * Admits a request, immediately if possible. Undefined when the request is rejected, which is answered with 429. The
   * caller must pass the seat to {@link leave}, even when the request has ended in the meantime.
   */
  enter(
    attributes: RequestAttributes,
    user: UserInfo,
    isConnect: boolean,
  ): Seat | undefined | Promise<Seat | undefined> {
    if (isConnect) return this.#enterLasting(connectFlow, user, this.#limits.connects, this.#limits.connectsPerUser);
    if (attributes.verb === 'watch' && attributes.isResourceRequest) {
      return this.#enterLasting(watchFlow, user, this.#limits.watches, this.#limits.watchesPerUser);
    }
    const kind = reading.has(attributes.verb) ? 'read' : 'mutate';
    const schema = this.#schemaOf(attributes, user);
    const level = this.#levels.get(schema.level);
    if (level === undefined) {
      this.#counts[kind] += 1;
      return { kind, user: user.name, flow: undefined };
    }
    const key = schema.distinguisher === 'namespace' ? attributes.namespace : user.name;
    const flow = level.flow(key);
    const seat: Seat = { kind, user: user.name, flow };
    if (flow.waiting.length === 0 && this.#mayRun(flow)) {
      this.#occupy(seat, flow);
      return seat;
    }
    return this.#wait(seat, flow);
  }

  /** Releases the seat of a request and admits waiting requests. */
  leave(seat: Seat): void {
    const { kind, user, flow } = seat;
    this.#counts[kind] -= 1;
    if (kind === watchFlow || kind === connectFlow) {
      const own = (this.#perUser[kind].get(user) ?? 1) - 1;
      if (own === 0) this.#perUser[kind].delete(user);
      else this.#perUser[kind].set(user, own);
    }
    if (flow === undefined) return;
    flow.running -= 1;
    flow.level.running -= 1;
    this.#running -= 1;
    this.#forget(flow);
    if (this.#queued > 0) for (const level of this.#levels.values()) this.#dispatch(level);
  }

  #schemaOf(attributes: RequestAttributes, user: UserInfo): FlowSchema {
    let schemas = this.#schemasOf.get(user);
    if (schemas === undefined) {
      schemas = this.#schemas.filter((schema) => matchesUser(schema, user));
      this.#schemasOf.set(user, schemas);
    }
    // The last built-in schema matches every request.
    return schemas.find((schema) => matchesRequest(schema, attributes)) ?? (schemas.at(-1) as FlowSchema);
  }

  #enterLasting(kind: 'watch' | 'connect', user: UserInfo, limit: number, limitPerUser: number): Seat | undefined {
    const own = this.#perUser[kind].get(user.name) ?? 0;
    const limited = own >= limitPerUser && !user.groups.includes('system:masters');
    if (this.#counts[kind] >= limit || limited) return undefined;
    this.#counts[kind] += 1;
    this.#perUser[kind].set(user.name, own + 1);
    return { kind, user: user.name, flow: undefined };
  }

  /** Number of seats that a level may occupy now: its own, and free seats that other levels do not reserve. */
  #seatsFor(level: Level): number {
    let reserved = 0;
    for (const other of this.#levels.values()) if (other !== level) reserved += other.reserved;
    return Math.max(level.seats, level.running + this.#limits.requestsInFlight - this.#running - reserved);
  }

  #mayRun({ level, running }: Flow): boolean {
    const free = this.#seatsFor(level) - level.running;
    return free > 0 && (running === 0 || running < free);
  }

  #occupy({ kind }: Seat, flow: Flow): void {
    this.#counts[kind] += 1;
    flow.running += 1;
    flow.level.running += 1;
    this.#running += 1;
  }

  #wait(seat: Seat, flow: Flow): Promise<Seat | undefined> | undefined {
    const { level } = flow;
    if (flow.waiting.length >= this.#options.queueLength || level.queued >= this.#options.levelQueueLength) {
      this.#metrics.flowRejected(level.name, 'queue-full');
      return undefined;
    }
    return new Promise((resolve) => {
      const waiting: Waiting = {
        seat,
        resolve,
        since: this.#clock.monotonic(),
        cancelTimer: this.#clock.after(this.#options.queueWaitMs, () => this.#timeOut(flow, waiting)),
      };
      if (flow.waiting.push(waiting) === 1) level.turns.push(flow);
      level.queued += 1;
      this.#queued += 1;
    });
  }

  #timeOut(flow: Flow, waiting: Waiting): void {
    flow.waiting.splice(flow.waiting.indexOf(waiting), 1);
    if (flow.waiting.length === 0) flow.level.turns.splice(flow.level.turns.indexOf(flow), 1);
    this.#dequeued(flow, waiting);
    this.#forget(flow);
    this.#metrics.flowRejected(flow.level.name, 'time-out');
    waiting.resolve(undefined);
  }

  /**
   * Gives the free seats of a level to waiting requests. Flows take turns, with one request each, and are skipped at
   * their limit.
   */
  #dispatch(level: Level): void {
    for (let skipped = 0; skipped < level.turns.length; ) {
      const flow = level.turns.shift();
      const waiting = flow?.waiting[0];
      if (flow === undefined || waiting === undefined) return;
      if (!this.#mayRun(flow)) {
        level.turns.push(flow);
        skipped += 1;
        continue;
      }
      flow.waiting.shift();
      this.#dequeued(flow, waiting);
      if (flow.waiting.length > 0) level.turns.push(flow);
      this.#occupy(waiting.seat, flow);
      waiting.resolve(waiting.seat);
      skipped = 0;
    }
  }

  #dequeued({ level }: Flow, { cancelTimer, since }: Waiting): void {
    cancelTimer();
    level.queued -= 1;
    this.#queued -= 1;
    this.#metrics.flowWaited(level.name, this.#clock.monotonic() - since);
  }

  #forget(flow: Flow): void {
    if (flow.running === 0 && flow.waiting.length === 0) flow.level.flows.delete(flow.key);
  }
}
