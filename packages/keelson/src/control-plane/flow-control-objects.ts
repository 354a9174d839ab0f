import { isDeepStrictEqual } from 'node:util';
import { Informer } from '@keelson/client';
import { type ConditionFields, patchStatus, withCondition } from '@keelson/controller-kit';
import { type ApiClient, isStatusError, type KubeObject, StatusReason } from '@keelson/core';
import { type Clock, type Logger, pause, type Service } from '@keelson/core/runtime';
import type { FlowRule, FlowRules, PriorityLevel, RuledFlowSchema } from '@keelson/http-koa';
import {
  autoupdateSpecAnnotation,
  defaultFlowSchemas,
  defaultPriorityLevels,
  FlowSchema,
  type flowcontrolV1,
  PriorityLevelConfiguration,
} from '@keelson/kinds';
import { ensureObject, keepPeriodMs } from './plane-services.ts';

export interface FlowControlObjectsOptions {
  readonly client: () => ApiClient;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Resolves when the objects may be read and written. Absent: at once. */
  readonly after: Promise<unknown> | undefined;
}

/** Levels that exist even when their objects have been deleted. */
const mandatory = defaultPriorityLevels.filter(({ metadata }) =>
  ['exempt', 'catch-all'].includes(metadata?.name ?? ''),
);

/** True for an object whose spec the server is to update, and which has another one. */
function isOutdated({ metadata, spec }: FlowSchema | PriorityLevelConfiguration, expected: { spec: object }): boolean {
  return metadata?.annotations?.[autoupdateSpecAnnotation] === 'true' && !isDeepStrictEqual(spec, expected.spec);
}

const nameOf = ({ metadata }: KubeObject) => metadata?.name ?? '';

/**
 * Creates the default FlowSchemas and PriorityLevelConfigurations, applies all of them to the servers of a plane, and
 * reports schemas without level. It begins with the first server, and no start waits for it: until the objects are
 * read, the levels and schemas of the HTTP server apply.
 */
export class FlowControlObjects implements Service {
  readonly name = 'flow-control';
  readonly #options: FlowControlObjectsOptions;
  readonly #levels = new Map<string, PriorityLevelConfiguration>();
  readonly #schemas = new Map<string, FlowSchema>();
  readonly #followers: ((rules: FlowRules) => void)[] = [];
  #informers: readonly Pick<Informer<FlowSchema>, 'start' | 'stop' | 'synced'>[] = [];
  #rules: FlowRules | undefined;
  #scheduled = false;
  #reporting = Promise.resolve();
  #keeping = Promise.resolve();
  /** Not awaited by {@link stop}: a server that cannot listen is stopped while this still waits. */
  #begun: Promise<void> | undefined;
  #running: Promise<void> | undefined;
  readonly #stopped = new AbortController();

  constructor(options: FlowControlObjectsOptions) {
    this.#options = options;
  }

  /** Calls `apply` with the present rules once they are known, and again after each change. */
  readonly follow = (apply: (rules: FlowRules) => void): void => {
    this.#followers.push(apply);
    if (this.#rules !== undefined) apply(this.#rules);
    this.#begun ??= Promise.resolve(this.#options.after).then(() => {
      if (!this.#stopped.signal.aborted) this.#running = this.#run();
    });
  };

  async start(): Promise<void> {}

  async #run(): Promise<void> {
    const { client, clock, logger } = this.#options;
    await this.#ensureDefaults();
    if (this.#stopped.signal.aborted) return;
    this.#keeping = this.#keepDefaults();
    const api = client();
    const keptIn = <T extends KubeObject>(objects: Map<string, T>) => ({
      added: (object: T) => this.#change(() => objects.set(nameOf(object), object)),
      updated: (object: T) => this.#change(() => objects.set(nameOf(object), object)),
      deleted: (object: T) => this.#change(() => objects.delete(nameOf(object))),
    });
    const shared = { clock, logger, keep: <T>(object: T) => object };
    this.#informers = [
      new Informer({
        ...shared,
        client: api.resource(PriorityLevelConfiguration),
        handlers: keptIn(this.#levels),
      }),
      new Informer({ ...shared, client: api.resource(FlowSchema), handlers: keptIn(this.#schemas) }),
    ];
    await Promise.all(this.#informers.map((informer) => informer.start()));
    this.#apply();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await Promise.all(this.#informers.map((informer) => informer.stop()));
    await Promise.all([this.#reporting, this.#keeping]);
    await this.#running;
  }

  /** A failed attempt is repeated after a minute. */
  async #ensureDefaults(): Promise<void> {
    const api = this.#options.client();
    const levels = defaultPriorityLevels.map((level) =>
      ensureObject(api, PriorityLevelConfiguration, level, (existing) => isOutdated(existing, level)),
    );
    const schemas = defaultFlowSchemas.map((schema) =>
      ensureObject(api, FlowSchema, schema, (existing) => isOutdated(existing, schema)),
    );
    await Promise.all([...levels, ...schemas]).catch((err: unknown) => {
      const message = 'a default object of flow control could not be written, will retry';
      if (!this.#stopped.signal.aborted) this.#options.logger.warn(message, { component: this.name, err });
    });
  }

  async #keepDefaults(): Promise<void> {
    const { signal } = this.#stopped;
    for (;;) {
      await pause(this.#options.clock, keepPeriodMs, signal);
      if (signal.aborted) return;
      await this.#ensureDefaults();
    }
  }

  /** The changes of one turn of the event loop are applied together. */
  #change(change: () => void): void {
    change();
    if (this.#scheduled) return;
    this.#scheduled = true;
    void Promise.resolve().then(() => {
      this.#scheduled = false;
      this.#apply();
    });
  }

  #apply(): void {
    if (this.#stopped.signal.aborted || !this.#informers.every(({ synced }) => synced)) return;
    const levels = new Map([...mandatory.map((level) => [nameOf(level), level] as const), ...this.#levels]);
    const schemas = [...this.#schemas.values()];
    this.#rules = flowRules([...levels.values()], schemas);
    for (const apply of this.#followers) apply(this.#rules);
    this.#reporting = this.#reporting.then(async () => {
      for (const schema of schemas) await this.#report(schema, levels.has(schema.spec.priorityLevelConfiguration.name));
    });
  }

  async #report(schema: FlowSchema, found: boolean): Promise<void> {
    if (this.#stopped.signal.aborted) return;
    const { client, clock, logger } = this.#options;
    const level = JSON.stringify(schema.spec.priorityLevelConfiguration.name);
    const condition = {
      type: 'Dangling',
      status: found ? 'False' : 'True',
      reason: found ? 'Found' : 'NotFound',
      message: `This FlowSchema references the PriorityLevelConfiguration object named ${level} ${
        found ? 'and it exists' : 'but there is no such object'
      }`,
    };
    // Validation requires the type of each condition.
    const present = schema.status?.conditions as readonly ConditionFields[] | undefined;
    const conditions = [...withCondition(present, condition, clock)];
    await patchStatus({ client: client() }, FlowSchema, schema, { conditions }).catch((err: unknown) => {
      // The object has changed: its next event causes another attempt.
      if (isStatusError(err, StatusReason.Conflict) || isStatusError(err, StatusReason.NotFound)) return;
      logger.warn('the status of a flow schema was not written', { component: this.name, name: nameOf(schema), err });
    });
  }
}

/** The rules of objects of the API; a schema whose level does not exist is left out. */
export function flowRules(levels: readonly PriorityLevelConfiguration[], schemas: readonly FlowSchema[]): FlowRules {
  const names = new Set(levels.map(nameOf));
  const order = (a: FlowSchema, b: FlowSchema) =>
    a.spec.matchingPrecedence - b.spec.matchingPrecedence || (nameOf(a) < nameOf(b) ? -1 : 1);
  return {
    levels: levels.map(levelOf),
    schemas: schemas
      .filter(({ spec }) => names.has(spec.priorityLevelConfiguration.name))
      .sort(order)
      .map(schemaOf),
  };
}

function levelOf({ metadata, spec }: PriorityLevelConfiguration): PriorityLevel {
  const name = metadata?.name ?? '';
  const { limited } = spec;
  const { nominalConcurrencyShares: shares = 0, lendablePercent = 0 } = limited ?? spec.exempt ?? {};
  if (limited === undefined) return { name, shares, lendablePercent };
  const { borrowingLimitPercent, limitResponse } = limited;
  const { queues = 0, queueLengthLimit = 0 } = limitResponse.queuing ?? {};
  return {
    ...{ name, shares, lendablePercent },
    ...(borrowingLimitPercent === undefined ? {} : { borrowingLimitPercent }),
    queueLength: queueLengthLimit,
    levelQueueLength: queues * queueLengthLimit,
  };
}

function schemaOf({ metadata, spec }: FlowSchema): RuledFlowSchema {
  const { distinguisherMethod, priorityLevelConfiguration, rules = [] } = spec;
  const distinguisher = { ByUser: 'user', ByNamespace: 'namespace' } as const;
  const method = distinguisherMethod?.type as keyof typeof distinguisher | undefined;
  return {
    name: metadata?.name ?? '',
    level: priorityLevelConfiguration.name,
    distinguisher: method === undefined ? 'none' : distinguisher[method],
    rules: rules.map(ruleOf),
  };
}

function ruleOf(rule: flowcontrolV1.PolicyRulesWithSubjects): FlowRule {
  const { subjects, resourceRules = [], nonResourceRules = [] } = rule;
  const users: string[] = [];
  const groups: string[] = [];
  for (const { user, group, serviceAccount } of subjects) {
    if (user) users.push(user.name);
    if (group) groups.push(group.name);
    if (serviceAccount?.name === '*') groups.push(`system:serviceaccounts:${serviceAccount.namespace}`);
    else if (serviceAccount) users.push(`system:serviceaccount:${serviceAccount.namespace}:${serviceAccount.name}`);
  }
  return { users, groups, resourceRules, nonResourceRules };
}
