import type { UserInfo } from '@keelson/core';
import type { RequestAttributes } from '@keelson/core/internal';
import type { Clock } from '@keelson/core/runtime';
import type {
  FlowControlOptions,
  FlowPathRule,
  FlowResourceRule,
  FlowRule,
  FlowSchema,
  PriorityLevel,
  RuledFlowSchema,
} from './flow-options.ts';
import type { HttpLevels, HttpMetrics } from './metrics.ts';
import type { HttpLimits } from './options.ts';
import {
  connectFlow,
  defaultLevels,
  type Flow,
  keptSeats,
  Level,
  type Seat,
  type Waiting,
  watchFlow,
} from './priority-levels.ts';

/** Name of the priority level whose requests are not limited. */
const exempt = 'exempt';
/** Name of the level of requests that match no other flow schema. */
const catchAll = 'catch-all';

/** The built-in flow schemas; a request belongs to the first that matches. The last one matches every request. */
const defaultSchemas: readonly FlowSchema[] = [
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
const lastSchemas = defaultSchemas.slice(-1);

const reading: ReadonlySet<string> = new Set(['get', 'list', 'head', 'watch', 'proxy']);

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

/** A flow schema for the requests of one user. */
interface UserSchema {
  readonly level: string;
  readonly distinguisher: RuledFlowSchema['distinguisher'];
  matches(attributes: RequestAttributes): boolean;
}

function matchesResource(rule: FlowResourceRule, attributes: RequestAttributes): boolean {
  const { verb, apiGroup, resource, subresource, namespace } = attributes;
  if (!has(rule.verbs, verb) || !has(rule.apiGroups, apiGroup)) return false;
  if (!has(rule.resources, subresource === '' ? resource : `${resource}/${subresource}`)) return false;
  return namespace === '' ? rule.clusterScope === true : has(rule.namespaces, namespace);
}

function matchesPath({ verbs, nonResourceURLs }: FlowPathRule, { verb, path }: RequestAttributes): boolean {
  if (!has(verbs, verb)) return false;
  return nonResourceURLs.some((url) => url === path || (url.endsWith('*') && path.startsWith(url.slice(0, -1))));
}

function matchesRule({ resourceRules, nonResourceRules }: FlowRule, attributes: RequestAttributes): boolean {
  if (attributes.isResourceRequest) return resourceRules.some((rule) => matchesResource(rule, attributes));
  return nonResourceRules.some((rule) => matchesPath(rule, attributes));
}

/** The schema for the requests of a user; empty when it matches none of them. */
function ruledSchemaFor({ level, distinguisher, rules }: RuledFlowSchema, { name, groups }: UserInfo): UserSchema[] {
  const own = rules.filter(
    (rule) => has(rule.users, name) || rule.groups.some((group) => group === '*' || groups.includes(group)),
  );
  return own.length === 0
    ? []
    : [{ level, distinguisher, matches: (attributes) => own.some((rule) => matchesRule(rule, attributes)) }];
}

function schemaFor(schema: FlowSchema, user: UserInfo): UserSchema[] {
  const { level, distinguisher = 'user' } = schema;
  if (!matchesUser(schema, user)) return [];
  return [{ level, distinguisher, matches: (attributes) => matchesRequest(schema, attributes) }];
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
  /** Seats that no level may use, for requests without a limit. */
  #exemptSeats = 0;
  /** In place of the built-in schemas. */
  #rules: readonly RuledFlowSchema[] | undefined;
  /** Flow schemas by user object: the user of a connection is the same object for every request. */
  #schemasOf = new WeakMap<UserInfo, readonly UserSchema[]>();
  readonly #counts = { read: 0, mutate: 0, watch: 0, connect: 0 };
  readonly #perUser = { watch: new Map<string, number>(), connect: new Map<string, number>() };
  #running = 0;
  #queued = 0;

  constructor(limits: HttpLimits, options: FlowControlOptions, clock: Clock, metrics: HttpMetrics) {
    this.#limits = limits;
    this.#options = options;
    this.#clock = clock;
    this.#metrics = metrics;
    this.#configure(defaultLevels);
    options.follow?.(({ levels, schemas }) => {
      this.#rules = schemas;
      this.#schemasOf = new WeakMap();
      this.#configure(levels);
      if (this.#queued > 0) for (const level of this.#levels.values()) this.#dispatch(level);
    });
  }

  #configure(given: readonly PriorityLevel[]): void {
    const own = this.#options.levels ?? [];
    // Requests whose level does not exist belong to the last of the built-in levels.
    const all = new Map([...defaultLevels.slice(-1), ...given, ...own].map((level) => [level.name, level]));
    const levels = [...all.values()];
    const shares = Math.max(
      1,
      levels.reduce((sum, level) => sum + level.shares, 0),
    );
    for (const level of this.#levels.values()) level.removed = true;
    this.#exemptSeats = 0;
    for (const level of levels) {
      const seats = Math.ceil((this.#limits.requestsInFlight * level.shares) / shares);
      if (level.name === exempt) {
        this.#exemptSeats = keptSeats(level, seats);
        continue;
      }
      const state = this.#levels.get(level.name) ?? new Level(level.name);
      this.#levels.set(level.name, state);
      state.configure(level, Math.max(1, seats), this.#options);
    }
    for (const level of this.#levels.values()) this.#forgetLevel(level);
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
    const level = schema.level === exempt ? undefined : (this.#levels.get(schema.level) ?? this.#levels.get(catchAll));
    if (level === undefined) {
      this.#counts[kind] += 1;
      return { kind, user: user.name, flow: undefined };
    }
    const { distinguisher } = schema;
    const flow = level.flow(
      distinguisher === 'user' ? user.name : distinguisher === 'namespace' ? attributes.namespace : '',
    );
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

  #schemaOf(attributes: RequestAttributes, user: UserInfo): UserSchema {
    let schemas = this.#schemasOf.get(user);
    if (schemas === undefined) {
      const own = this.#options.schemas ?? [];
      schemas = [
        ...own.flatMap((schema) => schemaFor(schema, user)),
        ...(this.#rules?.flatMap((schema) => ruledSchemaFor(schema, user)) ?? []),
        ...(this.#rules === undefined ? defaultSchemas : lastSchemas).flatMap((schema) => schemaFor(schema, user)),
      ];
      this.#schemasOf.set(user, schemas);
    }
    // The last schema matches every request.
    return schemas.find((schema) => schema.matches(attributes)) ?? (schemas.at(-1) as UserSchema);
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
    let reserved = this.#exemptSeats;
    for (const other of this.#levels.values()) if (other !== level) reserved += other.reserved;
    const free = this.#limits.requestsInFlight - this.#running - reserved;
    return Math.max(level.seats, Math.min(level.maxSeats, level.running + free));
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
    if (flow.waiting.length >= level.queueLength || level.queued >= level.levelQueueLength) {
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

  #forget({ level, key, running, waiting }: Flow): void {
    if (running > 0 || waiting.length > 0) return;
    level.flows.delete(key);
    this.#forgetLevel(level);
  }

  #forgetLevel(level: Level): void {
    if (level.removed && level.flows.size === 0) this.#levels.delete(level.name);
  }
}
