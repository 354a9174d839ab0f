import type { KindDefinition, StorageError } from '@keelson/core';
import {
  type ContinueTokens,
  didYouMean,
  kindPrefix,
  type ResourceStorages,
  storageKindOf,
  UsageError,
} from '@keelson/core/internal';
import type { PlaneStore } from './plane-store.ts';
import type { RoutePlan, StoragePlan } from './storage-plan.ts';

/** A health check. */
export interface StoreCheck {
  readonly name: string;
  readonly aliases?: Readonly<Partial<Record<'healthz' | 'livez' | 'readyz', readonly string[]>>>;
  readonly check: () => boolean;
}

/** All stores of a plane. */
export class PlaneStores implements ResourceStorages {
  /** The default store first. */
  readonly all: readonly PlaneStore[];
  readonly #byName: ReadonlyMap<string, PlaneStore>;
  readonly #storeOf: StoreOfKind;

  constructor(stores: readonly PlaneStore[], storeOf: StoreOfKind) {
    this.all = stores;
    this.#byName = new Map(stores.map((store) => [store.name, store]));
    this.#storeOf = storeOf;
  }

  of(kind: KindDefinition): PlaneStore {
    const store = this.#byName.get(this.#storeOf(kind));
    if (store === undefined) throw new Error(`there is no store for ${kind.names.plural}`);
    return store;
  }

  forKind(kind: KindDefinition): ReturnType<ResourceStorages['forKind']> {
    return this.of(kind).storages.forKind(kind);
  }

  tokensOf(kind: KindDefinition): ContinueTokens {
    return this.of(kind).tokens;
  }

  ready(): boolean {
    return this.all.every((store) => store.healthy);
  }

  /** One check per store; that of the default store is named `storage`, and has the names that Kubernetes uses. */
  checks(): StoreCheck[] {
    return this.all.map((store, i) => ({
      name: i === 0 ? 'storage' : `storage-${store.name}`,
      check: () => store.healthy,
      ...(i === 0 ? { aliases: { healthz: ['etcd'], livez: ['etcd'], readyz: ['etcd', 'informer-sync'] } } : {}),
    }));
  }

  /** Resolves with the reason when one of the stores has failed permanently. */
  failed(): Promise<StorageError> {
    return Promise.race(this.all.flatMap(({ failed }) => failed ?? []));
  }

  /** Opens every store; when one fails, all are closed. */
  async start(): Promise<void> {
    const results = await Promise.allSettled(this.all.map((store) => store.start()));
    const failed = results.find((result) => result.status === 'rejected');
    if (failed === undefined) return;
    await this.stop();
    throw failed.reason;
  }

  /** The steps that the start waits for. */
  waitingFor(): string | undefined {
    return this.all.flatMap((store) => store.waitingFor() ?? []).join(', ') || undefined;
  }

  async stop(): Promise<void> {
    await Promise.all(this.all.map((store) => store.stop()));
  }
}

/** The name of the store of a kind; also for kinds that are added later. */
export type StoreOfKind = (kind: KindDefinition) => string;

interface Claim {
  readonly route: RoutePlan;
  /** The resource as the route names it. */
  readonly resource: string;
}

const nameOfGroup = (group: string) => (group === '' ? 'the core group' : `the group ${group}`);
const nameOfKind = (kind: KindDefinition) => `${kind.names.plural}${kind.group === '' ? '' : `.${kind.group}`}`;

/**
 * Assigns the served kinds to stores. A route for resources takes precedence over one for their group. Kinds that are
 * two versions of the same stored objects are in the same store.
 *
 * @throws UsageError for a group or resource that is not served, and when two routes assign the same objects to
 *   different stores
 */
export function routeKinds(plan: StoragePlan, kinds: readonly KindDefinition[]): StoreOfKind {
  const exact = new Map<string, Claim>();
  const whole = new Map<string, Claim>();
  const groups = new Map<string, RoutePlan>();
  for (const route of plan.routes) {
    const inGroup = kinds.filter((kind) => kind.group === route.group);
    if (inGroup.length === 0) throw unknownGroup(route, kinds);
    if (route.resources === undefined) {
      groups.set(route.group, route);
      for (const kind of inGroup) if (!kind.virtual) assign(whole, kind, { route, resource: nameOfKind(kind) });
      continue;
    }
    for (const resource of route.resources) {
      const found = inGroup.filter((kind) => kind.names.plural === resource);
      const [first] = found;
      if (first === undefined) throw unknownResource(route, resource, inGroup);
      if (first.virtual) throw new UsageError(`${route.source}: ${nameOfKind(first)} is not stored anywhere`);
      for (const kind of found) assign(exact, kind, { route, resource: nameOfKind(kind) });
    }
  }
  const fallback = plan.stores[0]?.name ?? '';
  return (kind) => {
    const prefix = kindPrefix(kind);
    const found = exact.get(prefix) ?? whole.get(prefix);
    return found?.route.store ?? groups.get(storageKindOf(kind).group)?.store ?? fallback;
  };
}

function assign(claims: Map<string, Claim>, kind: KindDefinition, wanted: Claim): void {
  const prefix = kindPrefix(kind);
  const before = claims.get(prefix);
  if (before !== undefined && before.route.store !== wanted.route.store) {
    throw new UsageError(
      `${wanted.route.source}: ${wanted.resource} are the same objects as ${before.resource}, ` +
        `which ${before.route.source} sends to another store`,
    );
  }
  claims.set(prefix, before ?? wanted);
}

function unknownGroup(route: RoutePlan, kinds: readonly KindDefinition[]): UsageError {
  const known = [...new Set(kinds.map((kind) => kind.group))];
  return new UsageError(
    `${route.source}: no kind of ${nameOfGroup(route.group)} is served${didYouMean(route.group, known)}`,
  );
}

function unknownResource(route: RoutePlan, resource: string, inGroup: readonly KindDefinition[]): UsageError {
  const byKind = inGroup.find(({ kind, names }) =>
    [kind.toLowerCase(), names.singular, ...names.shortNames].includes(resource.toLowerCase()),
  );
  const known = [...new Set(inGroup.map((kind) => kind.names.plural))];
  const hint = byKind === undefined ? didYouMean(resource, known) : `; did you mean ${byKind.names.plural}?`;
  return new UsageError(`${route.source}: ${nameOfGroup(route.group)} has no resource ${resource}${hint}`);
}
