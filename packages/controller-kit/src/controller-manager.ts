import { keyOf, WorkQueue, type WorkResult } from '@keelson/client';
import type { GroupVersionResource, KindDefinition, KubeObject } from '@keelson/core';
import type { Service } from '@keelson/core/runtime';
import type { ControllerDefinition, ControllerHost, ReconcileRun } from './controller-definition.ts';
import { ObservedWrites } from './observed-writes.ts';
import { controllerOf } from './owner-references.ts';
import { SharedInformer } from './shared-informer.ts';

export interface ControllerManagerOptions extends ControllerHost {
  // biome-ignore lint/suspicious/noExplicitAny: controllers of kinds of every type
  readonly controllers: readonly ControllerDefinition<any>[];
}

/** Longest time for which a run waits until informers have observed the writes of the run before. */
const observeTimeoutMs = 60_000;

/**
 * Runs controllers: one informer for each kind that any of them reads, and one work queue for each controller. All
 * informers have completed their first list before the first run.
 */
export class ControllerManager implements Service {
  readonly name = 'controllers';
  readonly #options: ControllerManagerOptions;
  readonly #informers = new Map<string, SharedInformer>();
  readonly #queues: WorkQueue[] = [];
  #stopped = false;

  constructor(options: ControllerManagerOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { controllers } = this.#options;
    for (const { kind, owns = [], related = [] } of controllers)
      for (const read of [kind, ...owns, ...related.map((other) => other.kind)]) this.#informer(read);
    await Promise.all([...this.#informers.values()].map(({ informer }) => informer.start()));
    if (this.#stopped) return;
    for (const controller of controllers) this.#run(controller);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#queues.map((queue) => queue.stop()));
    await Promise.all([...this.#informers.values()].map(({ informer }) => informer.stop()));
  }

  #informer<T extends KubeObject>(kind: KindDefinition<T>): SharedInformer<T> {
    const id = `${kind.group}/${kind.names.plural}`;
    const known = this.#informers.get(id) ?? new SharedInformer<T>(kind, this.#options);
    this.#informers.set(id, known as SharedInformer);
    return known as SharedInformer<T>;
  }

  readonly #find = ({ group, resource }: GroupVersionResource) => this.#informers.get(`${group}/${resource}`);

  readonly #read: ReconcileRun['read'] = (kind) => {
    if (!this.#informers.has(`${kind.group}/${kind.names.plural}`))
      throw new Error(`no controller declares that it reads ${kind.names.plural}; add relatedKind(${kind.kind})`);
    return this.#informer(kind);
  };

  #run(controller: ControllerDefinition): void {
    const { clock, logger } = this.#options;
    const { name, kind, owns = [], related = [], workers = 1 } = controller;
    const written = new Map<string, ObservedWrites>();
    const queue = new WorkQueue({
      name,
      workers,
      clock,
      logger,
      work: async (key, signal) => {
        await written.get(key)?.visible(AbortSignal.any([signal, AbortSignal.timeout(observeTimeoutMs)]));
        const writes = new ObservedWrites(this.#find);
        written.set(key, writes);
        return this.#reconcile(controller, key, writes, signal);
      },
    });
    this.#queues.push(queue);
    const own = this.#informer(kind).informer;
    own.addHandlers({
      added: (_object, key) => queue.add(key),
      updated: (_object, _before, key) => queue.add(key),
      deleted: (_object, key) => queue.add(key),
    });
    for (const owned of owns)
      this.#follow(owned, (object) => {
        const owner = controllerOf(object);
        if (owner?.kind !== kind.kind || !isSameGroup(owner.apiVersion, kind.group)) return;
        queue.add(keyOf({ metadata: { ...object.metadata, name: owner.name } }));
      });
    for (const { kind: other, keys } of related)
      this.#follow(other, (object, before) => {
        for (const key of keys(object, before, this.#read)) queue.add(key);
      });
  }

  #follow(kind: KindDefinition, changed: (object: KubeObject, before?: KubeObject) => void): void {
    this.#informer(kind).informer.addHandlers({
      added: (object) => changed(object),
      updated: (object, before) => {
        changed(object, before);
        if (controllerOf(before)?.uid !== controllerOf(object)?.uid) changed(before);
      },
      deleted: (object) => changed(object),
    });
  }

  async #reconcile(
    { name, kind, reconcile, deleted }: ControllerDefinition,
    key: string,
    writes: ObservedWrites,
    signal: AbortSignal,
  ): Promise<WorkResult> {
    const { client, clock, logger } = this.#options;
    const run: ReconcileRun = {
      key,
      client: writes.client(client),
      clock,
      logger,
      signal,
      read: this.#read,
      event: (object, type, reason, message) => {
        logger.debug(message, { component: name, type, reason, object: keyOf(object) });
      },
    };
    const object = this.#informer(kind).get(key);
    return object === undefined ? await deleted?.(run) : await reconcile(object, run);
  }
}

function isSameGroup(apiVersion: string, group: string): boolean {
  return (apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '') === group;
}
