import { type KindDefinition, StorageMemory } from '@keelson/core';
import { routeKinds } from '../storage/kind-routes.ts';
import { KnownStores } from '../storage/known-stores.ts';
import { makeStore, type StoreSurroundings } from '../storage/open-storage.ts';
import { PlaneStore } from '../storage/plane-store.ts';
import { PlaneStores } from '../storage/plane-stores.ts';
import { planStorage } from '../storage/storage-plan.ts';
import type { ControlPlaneOptions } from './create-control-plane.ts';

/** The stores that the options name; nothing is opened yet. Throws `UsageError` for what cannot be meant. */
export async function makeStores(
  options: ControlPlaneOptions,
  kinds: readonly KindDefinition[],
  surroundings: StoreSurroundings,
): Promise<PlaneStores> {
  const {
    history,
    reads = 'consistent',
    data,
    acceptNewStore = false,
    continueTokens: tokens,
    watchWindow = {},
    memoryBudgets,
  } = options;
  const plan = planStorage(options.storage ?? 'memory:', { reads, history }, '--storage');
  const storeOf = routeKinds(plan, kinds);
  const known =
    data === undefined
      ? undefined
      : new KnownStores({ directory: data, acceptNew: acceptNewStore, logger: surroundings.logger });
  const configuration = kinds
    .map((kind) => `${kind.apiVersion}/${kind.kind}`)
    .sort()
    .join();
  const memory = new StorageMemory(surroundings.clock, memoryBudgets, surroundings.metrics);
  const stores: PlaneStore[] = [];
  for (const { name, reads: storeReads, ...rest } of plan.stores) {
    const made = await makeStore({ name, reads: storeReads, ...rest }, surroundings);
    stores.push(
      new PlaneStore({
        name,
        made,
        reads: storeReads,
        watchWindow,
        memory,
        known,
        tokens,
        configuration,
        ...surroundings,
      }),
    );
  }
  return new PlaneStores(stores, storeOf);
}
