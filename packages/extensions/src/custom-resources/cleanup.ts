import { isConditionTrue, withCondition } from '@keelson/controller-kit';
import { type ApiClient, isStatusError, type KindDefinition } from '@keelson/core';
import type { ResourceRegistry, ResourceStorage } from '@keelson/core/internal';
import type { Clock } from '@keelson/core/runtime';
import { CustomResourceDefinition } from '@keelson/kinds';
import { cleanupFinalizer } from './definition/checked-definition.ts';
import { customKind } from './serving/custom-kind.ts';

export interface CleanupOptions {
  readonly client: ApiClient;
  readonly registry: () => ResourceRegistry;
  readonly storageOf: (kind: KindDefinition) => ResourceStorage;
  readonly severalServers: () => boolean;
  readonly clock: Clock;
}

type Condition = { readonly status: string; readonly reason: string; readonly message: string };

const objectsPerCall = 500;
/** Interval of the checks while finalizers keep objects. */
const pollMs = 1000;
/**
 * Delay before the deletion of objects. Other servers may create objects until they observe the condition Terminating.
 */
const observedAfterMs = 1000;

/**
 * Deletes the objects of a deleted definition before the definition itself disappears.
 * Source: `apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go`.
 */
export class DefinitionCleanup {
  readonly #options: CleanupOptions;
  readonly #stop = new AbortController();

  constructor(options: CleanupOptions) {
    this.#options = options;
  }

  stop(): void {
    this.#stop.abort();
  }

  /** Performs one step of the cleanup. Returns the delay until the next step. */
  async run(definition: CustomResourceDefinition): Promise<number | undefined> {
    const { metadata, status } = definition;
    if (!metadata?.finalizers?.includes(cleanupFinalizer)) return undefined;
    const terminating = status?.conditions?.find(({ type }) => type === 'Terminating');
    if (terminating === undefined) {
      const message = 'CustomResource deletion is in progress';
      await this.#report(definition, { status: 'True', reason: 'InstanceDeletionInProgress', message });
      return undefined;
    }
    if (!isConditionTrue(status?.conditions, 'Established'))
      return this.#finish(definition, {
        status: 'False',
        reason: 'NeverEstablished',
        message: 'resource was never established',
      });
    const since = this.#options.clock.now() - (Date.parse(terminating.lastTransitionTime ?? '') || 0);
    // A second is added, because times in conditions have no fractions of seconds.
    if (this.#options.severalServers() && since < observedAfterMs + 1000) return observedAfterMs + 1000 - since;
    try {
      const left = await this.#deleteObjects(definition);
      if (left === 0)
        return await this.#finish(definition, {
          status: 'False',
          reason: 'InstanceDeletionCompleted',
          message: 'removed all instances',
        });
      return pollMs;
    } catch (error) {
      if (isStatusError(error) && error.code === 409) throw error;
      const message = `could not issue all deletes: ${(error as Error).message}`;
      await this.#report(definition, { status: 'True', reason: 'InstanceDeletionFailed', message });
      return pollMs;
    }
  }

  /** Returns the number of objects that remain, at least approximately. */
  async #deleteObjects(definition: CustomResourceDefinition): Promise<number> {
    const { client, registry } = this.#options;
    const { group, names, versions } = definition.spec;
    const served = registry()
      .kinds()
      .filter((one) => one.group === group && one.names.plural === names.plural);
    // The storage version needs no conversion: the conversion webhook may be gone already.
    const stored = versions.find(({ storage }) => storage)?.name;
    const kind = served.find(({ version }) => version === stored) ?? served[0];
    if (kind === undefined) return this.#deleteUnserved(definition);
    const resource = client.dynamic({ group, version: kind.version, resource: names.plural }, { metadataOnly: true });
    const { signal } = this.#stop;
    const deletion = { propagationPolicy: 'Background', limit: objectsPerCall, signal } as const;
    const namespaces = new Set<string>();
    let next: string | undefined;
    do {
      const page = await resource.list({ limit: objectsPerCall, signal, ...(next ? { continue: next } : {}) });
      for (const { metadata } of page.items) namespaces.add(metadata?.namespace ?? '');
      next = page.metadata.continue;
    } while (next);
    for (const namespace of namespaces) {
      const collection = namespace === '' ? resource : resource.namespace(namespace);
      let more: string | undefined;
      do
        more = (await collection.deleteCollection({ ...deletion, ...(more ? { continue: more } : {}) })).metadata
          .continue;
      while (more);
    }
    return (await resource.list({ limit: 1, signal })).items.length;
  }

  /**
   * Deletes objects of a definition without a served version. No client can observe these objects or wait for their
   * finalizers.
   */
  async #deleteUnserved(definition: CustomResourceDefinition): Promise<number> {
    const version = definition.spec.versions.find(({ storage }) => storage);
    if (version === undefined) return 0;
    const kind = customKind(definition, version, () => undefined);
    const storage = this.#options.storageOf(kind);
    const everything = { everything: true, id: '', matches: () => true };
    const prefix = `/${kind.group}/${kind.names.plural}/`;
    const page = await storage.list(prefix, { at: { at: 'latest' }, predicate: everything, limit: objectsPerCall });
    for (const { key } of page.objects())
      await storage.update(key, (current) => (current === undefined ? { do: 'keep' } : { do: 'delete' }));
    return page.next === undefined ? 0 : 1;
  }

  async #finish(definition: CustomResourceDefinition, condition: Condition): Promise<undefined> {
    const finalizers = (definition.metadata?.finalizers ?? []).filter((name) => name !== cleanupFinalizer);
    const reported = await this.#report(definition, condition);
    await this.#options.client.resource(CustomResourceDefinition).update({
      ...reported,
      metadata: { ...reported.metadata, finalizers },
    });
    return undefined;
  }

  async #report(definition: CustomResourceDefinition, condition: Condition): Promise<CustomResourceDefinition> {
    const { status = {}, metadata } = definition;
    const conditions = withCondition(status.conditions, { type: 'Terminating', ...condition }, this.#options.clock);
    if (conditions === status.conditions) return definition;
    const changed = { ...definition, status: { ...status, conditions: [...conditions] } };
    return (await this.#options.client
      .resource(CustomResourceDefinition)
      .updateSubresource(metadata?.name ?? '', 'status', changed)) as CustomResourceDefinition;
  }
}
