import { type EventRecorder, keyOf, WorkQueue, type WorkResult } from '@keelson/client';
import type { GroupVersionResource, KindDefinition, KubeObject } from '@keelson/core';
import { addAbortListener, type Counter, removeAbortListener } from '@keelson/core/runtime';
import type { ControllerDefinition, ControllerHost, ReconcileResult, ReconcileRun } from './controller-definition.ts';
import { HotLoops } from './hot-loops.ts';
import { resourceId } from './informer-pool.ts';
import { ObservedWrites } from './observed-writes.ts';
import { OwnChanges, TriggerList } from './own-changes.ts';
import { controllerOf } from './owner-references.ts';
import { type ReconcileRecord, ReconcileTrace, type Trigger } from './reconcile-trace.ts';
import type { SharedInformer } from './shared-informer.ts';

/** The local copies of a controller, by `group/version/plural`. */
export type Copies = ReadonlyMap<string, SharedInformer>;

/** Longest time for which a run waits until informers have observed the writes of the run before. */
const observeTimeoutMs = 60_000;

/** Types do not protect programs in JavaScript. @throws TypeError that names the controller */
function checkResult(name: string, result: unknown): void {
  if (result === undefined) return;
  const { againAfterMs } = (result ?? {}) as { readonly againAfterMs?: unknown };
  if (typeof againAfterMs === 'number' && againAfterMs >= 0) return;
  throw new TypeError(
    `the controller ${name} returned something other than nothing or { againAfterMs } with a number of milliseconds`,
  );
}

/** One controller: its queue, and what is known about each key. */
export class ControllerRunner {
  readonly name: string;
  readonly #definition: ControllerDefinition;
  readonly #copies: Copies;
  readonly #host: ControllerHost;
  readonly #recorder: EventRecorder;
  readonly #queue: WorkQueue;
  readonly #own = new OwnChanges();
  readonly #hot: HotLoops;
  readonly #trace = new ReconcileTrace();
  /** Changes since the last run of a key. */
  readonly #triggers = new Map<string, TriggerList>();
  /** Writes that are not visible in the local copies yet. */
  readonly #unseen = new Map<string, Promise<void>>();
  readonly #handlers: (() => void)[] = [];
  readonly #runs: Counter;
  readonly #hotLoops: Counter;

  constructor(definition: ControllerDefinition, copies: Copies, host: ControllerHost, recorder: EventRecorder) {
    const { name, workers = 1 } = definition;
    const { clock, logger, metrics } = host;
    this.name = name;
    this.#definition = definition;
    this.#copies = copies;
    this.#host = host;
    this.#recorder = recorder;
    this.#hot = new HotLoops(clock);
    this.#queue = new WorkQueue({
      ...{ name, workers, clock, logger, metrics },
      work: (key, signal) => this.#work(key, signal),
    });
    this.#runs = metrics.counter({
      name: 'keelson_controller_runs_total',
      help: 'Reconciles by result: done, again, failed.',
      labels: ['controller', 'result'],
    });
    this.#hotLoops = metrics.counter({
      name: 'keelson_controller_hot_loops_total',
      help: 'Reconciles that were delayed because only writes of the controller itself trigger them.',
      labels: ['controller'],
    });
  }

  /**
   * Starts the informers and reconciles all objects, then those that change. Resolves earlier when the controller waits
   * for the first object.
   */
  async start(signal: AbortSignal): Promise<void> {
    const { kind, needsObjects = false } = this.#definition;
    if (!needsObjects) return this.#begin(signal);
    const own = this.#copy(kind);
    const hasObjects = () => own.list().length > 0;
    await own.informer.start();
    if (hasObjects()) return this.#begin(signal);
    void own.until(hasObjects, signal).then(() => this.#begin(signal));
  }

  async #begin(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    await Promise.all([...this.#copies.values()].map(({ informer }) => informer.start()));
    if (!signal.aborted) this.#run();
  }

  get trace(): readonly ReconcileRecord[] {
    return this.#trace.records;
  }

  /**
   * Number of records about keys that the runner keeps: pending changes, writes that are not visible yet, and hot
   * loops.
   */
  get remembered(): number {
    return this.#triggers.size + this.#unseen.size + this.#hot.size;
  }

  #run(): void {
    const { kind, owns = [], related = [] } = this.#definition;
    this.#follow(kind, (object) => [keyOf(object)]);
    for (const owned of owns) this.#follow(owned, (object, before) => this.#ownersOf(object, before));
    for (const { kind: other, keys } of related)
      this.#follow(other, (object, before) => keys(object, before, this.#read));
  }

  async stop(): Promise<void> {
    for (const remove of this.#handlers.splice(0)) remove();
    await this.#queue.stop();
  }

  #ownersOf(object: KubeObject, before: KubeObject | undefined): string[] {
    const { kind } = this.#definition;
    const owners = new Set<string>();
    for (const state of before === undefined ? [object] : [object, before]) {
      const owner = controllerOf(state);
      if (owner?.kind !== kind.kind || groupOf(owner.apiVersion) !== kind.group) continue;
      const namespace = kind.scope === 'Cluster' ? '' : (state.metadata?.namespace ?? '');
      owners.add(keyOf({ metadata: { namespace, name: owner.name } }));
    }
    return [...owners];
  }

  #follow(kind: KindDefinition, keysOf: (object: KubeObject, before?: KubeObject) => readonly string[]): void {
    const { group, names } = kind;
    const add = (change: Trigger['change'], object: KubeObject, before?: KubeObject) => {
      for (const key of keysOf(object, before)) {
        const list = this.#triggers.get(key) ?? new TriggerList();
        this.#triggers.set(key, list);
        list.add({ change, resource: names.plural, key: keyOf(object) }, group, object, this.#own);
        this.#queue.add(key);
      }
    };
    const remove = this.#copy(kind).informer.addHandlers({
      added: (object) => add('added', object),
      updated: (object, before) => add('updated', object, before),
      deleted: (object) => add('deleted', object),
    });
    this.#handlers.push(remove);
  }

  readonly #copy = (kind: KindDefinition): SharedInformer => {
    const copy = this.#find({ group: kind.group, version: kind.version, resource: kind.names.plural });
    if (copy === undefined)
      throw new Error(
        `the controller ${this.name} does not declare that it reads ${kind.names.plural}; ` +
          `add relatedKind(${kind.kind}) to "related"`,
      );
    return copy;
  };

  readonly #find = ({ group, version, resource }: GroupVersionResource) =>
    this.#copies.get(`${group}/${version}/${resource}`);

  readonly #read = this.#copy as unknown as ReconcileRun['read'];

  async #work(key: string, signal: AbortSignal): Promise<WorkResult> {
    await this.#unseen.get(key);
    if (signal.aborted) return undefined;
    this.#queue.readsNow(key);
    const triggers = this.#triggers.get(key) ?? new TriggerList();
    const isOwn = triggers.areAllIn(this.#own);
    const delayMs = this.#hot.delayOf(key, isOwn);
    if (delayMs > 0) return { againAfterMs: delayMs };
    this.#triggers.delete(key);
    const { client, clock, logger } = this.#host;
    const writes = new ObservedWrites(this.#find, (version) => this.#own.add(version));
    const run: ReconcileRun = {
      ...{ key, clock, logger, signal },
      client: writes.client(client),
      read: this.#read,
      event: (object, type, reason, message) => this.#recorder.record(subjectOf(object), type, reason, message),
    };
    const startedAt = clock.now();
    const began = clock.monotonic();
    let result: ReconcileResult;
    let failure: { readonly error: unknown } | undefined;
    try {
      const returned = await this.#reconcile(run);
      checkResult(this.name, returned);
      result = returned;
    } catch (error) {
      failure = { error };
    }
    if (writes.pending) this.#observe(key, writes, signal);
    const hot = this.#hot.ran(key, isOwn, writes.count > 0, result?.againAfterMs);
    if (hot !== undefined) this.#reportHotLoop(run, hot, writes);
    const record: ReconcileRecord = {
      ...{ key, startedAt, durationMs: clock.monotonic() - began },
      ...{ triggers: triggers.first, writes: writes.recorded, writeCount: writes.count },
      ...(failure === undefined ? {} : { error: String((failure.error as Error)?.message ?? failure.error) }),
      ...requeueOf(failure !== undefined, hot?.delayMs, result?.againAfterMs),
    };
    this.#trace.add(record);
    this.#runs.add(1, { controller: this.name, result: failure ? 'failed' : result ? 'again' : 'done' });
    logger.debug('reconciled', { component: this.name, ...record });
    if (failure !== undefined) throw failure.error;
    return result;
  }

  async #reconcile(run: ReconcileRun): Promise<ReconcileResult> {
    const { kind, reconcile, deleted } = this.#definition;
    const object = this.#copy(kind).get(run.key);
    const work = async () =>
      object === undefined ? deleted?.(run) : (reconcile(object, run) as Promise<ReconcileResult>);
    const { tracing } = this.#host;
    if (tracing === undefined) return work();
    const slash = run.key.indexOf('/');
    const namespace = slash === -1 ? {} : { 'k8s.namespace.name': run.key.slice(0, slash) };
    const attributes = { 'keelson.controller': this.name, 'keelson.resource': resourceId(kind), ...namespace };
    return tracing.span({ name: `reconcile ${this.name}`, attributes }, work);
  }

  /** The next run of the key begins when the writes are visible. */
  #observe(key: string, writes: ObservedWrites, signal: AbortSignal): void {
    const { clock, logger } = this.#host;
    const end = new AbortController();
    const abort = () => end.abort();
    addAbortListener(signal, abort);
    const cancel = clock.after(observeTimeoutMs, () => {
      logger.warn('writes are not visible in the local copy', { component: this.name, key });
      abort();
    });
    const seen = writes
      .visible(end.signal)
      .catch((err: unknown) => logger.error('writes cannot be observed', { component: this.name, key, err }))
      .finally(() => {
        cancel();
        removeAbortListener(signal, abort);
        if (this.#unseen.get(key) === seen) this.#unseen.delete(key);
      });
    this.#unseen.set(key, seen);
  }

  #reportHotLoop(run: ReconcileRun, hot: { runs: number; delayMs: number }, writes: ObservedWrites): void {
    const last = writes.recorded.slice(-5).map(({ verb, resource, key }) => `${verb} ${resource} ${key}`);
    const seconds = hot.delayMs / 1000;
    this.#hotLoops.add(1, { controller: this.name });
    this.#host.logger.warn('a controller is triggered only by its own writes and is delayed', {
      ...{ component: this.name, key: run.key, runs: hot.runs, seconds, writes: last },
    });
    const object = this.#copy(this.#definition.kind).get(run.key);
    if (object === undefined) return;
    const message = `${hot.runs} consecutive runs of ${this.name} were triggered only by its own writes: ${last.join(', ')}`;
    run.event(object, 'Warning', 'HotLoop', message);
  }
}

function requeueOf(failed: boolean, hotDelayMs: number | undefined, againAfterMs: number | undefined) {
  if (hotDelayMs !== undefined) return { requeue: 'hot loop' as const, againAfterMs: hotDelayMs };
  if (failed) return { requeue: 'failed' as const };
  return againAfterMs === undefined ? {} : { requeue: 'requested' as const, againAfterMs };
}

function groupOf(apiVersion: string): string {
  return apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
}

function subjectOf({ apiVersion = '', kind = '', metadata = {} }: KubeObject) {
  const { namespace, name = '', uid = '', resourceVersion } = metadata;
  return {
    ...{ apiVersion, kind, name, uid },
    ...(namespace === undefined ? {} : { namespace }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  };
}
