import { Informer, WorkQueue, type WorkResult } from '@keelson/client';
import { isStatusError, type KubeObject, StatusReason } from '@keelson/core';
import type { Service } from '@keelson/core/runtime';
import { Namespace } from '@keelson/kinds';
import type { ControllerOptions } from '../controller-options.ts';
import { ResourceMap } from '../resource-map.ts';
import { type Emptied, emptyNamespace } from './empty-namespace.ts';
import { terminationConditions } from './termination-conditions.ts';

const finalizer = 'kubernetes';
/** Pause before remaining content is checked again; it doubles each time. */
const firstRecheckMs = 50;
const maxRecheckMs = 5_000;

interface Kept {
  readonly name: string;
  readonly deleting: boolean;
}

/**
 * Completes the deletion of namespaces: removes all objects of a namespace, then its finalizer `kubernetes`, which
 * removes the namespace itself. Reports what still blocks the deletion in the conditions. See
 * docs/reference/api-rules.md#namespace-life-cycle.
 */
export class NamespaceController implements Service {
  readonly name = 'namespace-controller';
  readonly #options: ControllerOptions;
  readonly #informer: Informer<KubeObject, Kept>;
  readonly #queue: WorkQueue;
  readonly #resources: ResourceMap;
  readonly #rechecks = new Map<string, number>();

  constructor(options: ControllerOptions) {
    this.#options = options;
    this.#resources = new ResourceMap(options.client, options.clock);
    this.#queue = new WorkQueue({
      ...options,
      name: this.name,
      workers: 4,
      work: (name, signal) => this.#finish(name, signal),
    });
    const consider = (kept: Kept) => {
      if (kept.deleting) this.#queue.add(kept.name);
    };
    this.#informer = new Informer({
      ...options,
      client: options.client.dynamic({ group: '', version: 'v1', resource: 'namespaces' }, { metadataOnly: true }),
      keep: ({ metadata = {} }) => ({ name: metadata.name ?? '', deleting: metadata.deletionTimestamp !== undefined }),
      handlers: { added: consider, updated: consider, deleted: (kept) => this.#rechecks.delete(kept.name) },
    });
  }

  start(): Promise<void> {
    return this.#informer.start();
  }

  async stop(): Promise<void> {
    await this.#informer.stop();
    await this.#queue.stop();
  }

  async #finish(name: string, signal: AbortSignal): Promise<WorkResult> {
    const namespaces = this.#options.client.resource(Namespace);
    const namespace = await namespaces.get(name).catch(missingIsUndefined);
    if (namespace?.metadata?.deletionTimestamp === undefined) return undefined;
    if (!(namespace.spec?.finalizers ?? []).includes(finalizer)) return undefined;
    const emptied = await emptyNamespace(this.#options.client, await this.#resources.all(), name, signal);
    if (emptied.remaining.length > 0 || emptied.failures.length > 0) {
      await this.#reportRemaining(name, emptied);
      return { againAfterMs: this.#nextRecheck(name) };
    }
    const finalizers = (namespace.spec?.finalizers ?? []).filter((entry) => entry !== finalizer);
    await namespaces
      .updateSubresource(name, 'finalize', { ...namespace, spec: { ...namespace.spec, finalizers } } as KubeObject)
      .catch(missingIsUndefined);
    this.#rechecks.delete(name);
    return undefined;
  }

  async #reportRemaining(name: string, emptied: Emptied): Promise<void> {
    const conditions = terminationConditions(
      emptied,
      new Date(this.#options.clock.now()).toISOString().replace(/\.\d+Z$/, 'Z'),
    );
    const current = await this.#options.client.resource(Namespace).get(name).catch(missingIsUndefined);
    const known = current?.status?.conditions ?? [];
    const changed = conditions.filter((wanted) => {
      const before = known.find((condition) => condition.type === wanted.type);
      return before?.status !== wanted.status || before.reason !== wanted.reason || before.message !== wanted.message;
    });
    if (changed.length === 0) return;
    await this.#options.client
      .resource(Namespace)
      .patchSubresource(name, 'status', 'strategic', { status: { conditions: changed } })
      .catch(missingIsUndefined);
  }

  #nextRecheck(name: string): number {
    const ms = this.#rechecks.get(name) ?? firstRecheckMs;
    this.#rechecks.set(name, Math.min(maxRecheckMs, ms * 2));
    return ms;
  }
}

function missingIsUndefined(error: unknown): undefined {
  if (!isStatusError(error, StatusReason.NotFound)) throw error;
}
