import {
  type Amounts,
  addAmounts,
  amountOf,
  increases,
  negated,
  scopesOf,
  type UsageOfKind,
  usageOfKind,
} from '@keelson/controllers';
import { compareQuantities, type KindDefinition, type KubeObject, type StatusError, statusErrors } from '@keelson/core';
import {
  type Allocation,
  type ObjectAllocator,
  objectCodecOf,
  objectKey,
  type StoredObject,
} from '@keelson/core/internal';
import type { Clock } from '@keelson/core/runtime';
import { ResourceQuota } from '@keelson/kinds';
import type { CachedObjects, StorageOfKind } from './cached-objects.ts';

export interface QuotaOptions {
  readonly objects: CachedObjects;
  readonly storages: StorageOfKind;
  readonly clock: Clock;
}

/** A charge of one quota, and the revision at which it was written. */
interface Charge {
  readonly name: string;
  readonly usage: Amounts;
  readonly revision: number;
}

/**
 * Charges objects to the quotas of their namespace: the use in the status of each quota is raised by a conditional
 * write before the object is stored, so that no number of concurrent requests at any number of servers exceeds a
 * limit: see docs/how-to/limit-namespaces.md#quotas. Messages are those of the plugin ResourceQuota of kube-apiserver.
 */
export function quotaAllocator(kind: KindDefinition, options: QuotaOptions): ObjectAllocator | undefined {
  const usage = usageOfKind(kind);
  return usage && new QuotaAllocator(kind, usage, options);
}

class QuotaAllocator implements ObjectAllocator {
  readonly #kind: KindDefinition;
  readonly #usage: UsageOfKind;
  readonly #options: QuotaOptions;

  constructor(kind: KindDefinition, usage: UsageOfKind, options: QuotaOptions) {
    this.#kind = kind;
    this.#usage = usage;
    this.#options = options;
  }

  allocate(
    object: KubeObject,
    old: KubeObject | undefined,
    dryRun: boolean,
  ): Promise<Allocation | undefined> | undefined {
    const quotas = this.#options.objects.list(ResourceQuota, object.metadata?.namespace ?? '');
    return 'length' in quotas && quotas.length === 0 ? undefined : this.#allocate(quotas, object, old, dryRun);
  }

  async #allocate(
    listed: readonly ResourceQuota[] | Promise<readonly ResourceQuota[]>,
    object: KubeObject,
    old: KubeObject | undefined,
    dryRun: boolean,
  ): Promise<Allocation | undefined> {
    const namespace = object.metadata?.namespace ?? '';
    const quotas = await listed;
    if (quotas.length === 0 || (old !== undefined && !this.#usage.charges(object, old))) return undefined;
    // All quotas are checked before the first one is charged.
    for (const quota of quotas) this.#used(quota, object, old);
    if (dryRun) return undefined;
    const charges: Charge[] = [];
    const undo = () => Promise.all(charges.map((charge) => this.#refund(namespace, charge)));
    for (const quota of quotas) {
      const name = quota.metadata?.name ?? '';
      if (this.#used(quota, object, old) === undefined) continue;
      try {
        const charge = await this.#charge(namespace, name, object, old);
        if (charge) charges.push(charge);
      } catch (error) {
        await undo();
        throw error;
      }
    }
    if (charges.length === 0) return undefined;
    return {
      end: async (stored) => {
        if (!stored) await undo();
      },
    };
  }

  /** Does nothing: the controller of quotas subtracts deleted objects. */
  async release(): Promise<void> {}

  /** What an object adds to the use of a quota; undefined when nothing. @throws StatusError 403 */
  #used(quota: ResourceQuota, object: KubeObject, old: KubeObject | undefined): Amounts | undefined {
    const { hard = {}, used = {} } = quota.status ?? {};
    const resources = Object.keys(hard).filter(this.#usage.counts);
    if (resources.length === 0 || !this.#isInScope(quota, object)) return undefined;
    const name = quota.metadata?.name ?? '';
    const missing = this.#usage.missing(object, resources);
    if (missing !== undefined) throw this.#refusal(object, `failed quota: ${name}: ${missing}`);
    const unknown = resources.filter((resource) => amountOf(used, resource) === undefined);
    if (unknown.length > 0) {
      const list = resources.sort().join(',');
      throw this.#refusal(object, `status unknown for quota: ${name}, resources: ${list}`);
    }
    const now = new Date(this.#options.clock.now());
    const before = old !== undefined && this.#isInScope(quota, old) ? this.#usage.usageOf(old, now) : {};
    const delta = increases(this.#usage.usageOf(object, now), before);
    const requested = Object.fromEntries(Object.entries(delta).filter(([resource]) => Object.hasOwn(hard, resource)));
    if (Object.keys(requested).length === 0) return undefined;
    const total = addAmounts(used, requested);
    const exceeded = Object.keys(requested)
      .filter((resource) => compareQuantities(amountOf(total, resource) ?? '0', amountOf(hard, resource) ?? '0') > 0)
      .sort();
    if (exceeded.length === 0) return requested;
    const text = (amounts: Amounts) => exceeded.map((one) => `${one}=${amountOf(amounts, one) ?? '0'}`).join(',');
    const why = `requested: ${text(requested)}, used: ${text(used)}, limited: ${text(hard)}`;
    throw this.#refusal(object, `exceeded quota: ${name}, ${why}`);
  }

  #isInScope(quota: ResourceQuota, object: KubeObject): boolean {
    return scopesOf(quota).every((scope) => this.#usage.inScope(object, scope));
  }

  #refusal(object: KubeObject, why: string): StatusError {
    const { group, names } = this.#kind;
    return statusErrors.forbidden({ group, resource: names.plural }, object.metadata?.name ?? '', why);
  }

  async #charge(
    namespace: string,
    name: string,
    object: KubeObject,
    old: KubeObject | undefined,
  ): Promise<Charge | undefined> {
    let usage: Amounts | undefined;
    const stored = await this.#write(namespace, name, (quota) => {
      usage = this.#used(quota, object, old);
      return usage;
    });
    return usage && stored && { name, usage, revision: stored.revision };
  }

  /**
   * Undoes a charge, unless the quota was changed in the meantime: its controller may have counted again, and the use
   * must never be too low. Otherwise the controller corrects it.
   */
  async #refund(namespace: string, { name, usage, revision }: Charge): Promise<void> {
    const less = Object.fromEntries(Object.entries(usage).map(([resource, amount]) => [resource, negated(amount)]));
    await this.#write(namespace, name, (_, current) => (current.revision === revision ? less : undefined)).catch(
      () => undefined,
    );
  }

  /** Adds amounts to the use of a quota. `decide` is called for the current state, again after a concurrent write. */
  async #write(
    namespace: string,
    name: string,
    decide: (quota: ResourceQuota, current: StoredObject) => Amounts | undefined,
  ): Promise<StoredObject | undefined> {
    const storage = this.#options.storages.forKind(ResourceQuota);
    const { outcome, object } = await storage
      .update(objectKey(ResourceQuota, namespace, name), (current) => {
        if (current === undefined) throw new QuotaGone();
        const quota = current.value<ResourceQuota>();
        const added = decide(quota, current);
        if (added === undefined) return { do: 'keep' };
        const status = { ...quota.status, used: addAmounts(quota.status?.used ?? {}, added) };
        return { do: 'write', json: objectCodecOf(ResourceQuota).encode({ ...quota, status } as KubeObject) };
      })
      .catch((error: unknown) => {
        if (error instanceof QuotaGone) return { outcome: 'unchanged' as const, object: undefined };
        throw error;
      });
    return outcome === 'updated' ? object : undefined;
  }
}

/** The quota was deleted: it limits nothing any more. */
class QuotaGone extends Error {}

/** Runs two allocators. When the second one rejects an object, the charge of the first one is undone. */
export function bothAllocators(first: ObjectAllocator, second: ObjectAllocator): ObjectAllocator {
  return {
    async allocate(object, old, dryRun) {
      const charged = await first.allocate(object, old, dryRun);
      try {
        const allocated = await second.allocate(object, old, dryRun);
        return {
          end: async (stored) => {
            await allocated?.end(stored);
            await charged?.end(stored);
          },
        };
      } catch (error) {
        await charged?.end(false);
        throw error;
      }
    },
    async release(object) {
      await second.release(object);
    },
  };
}
