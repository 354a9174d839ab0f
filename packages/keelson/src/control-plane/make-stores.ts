import type { Encryption } from '@keelson/access';
import type { KindDefinition } from '@keelson/core';
import { StorageMemory, withoutPassword } from '@keelson/core/internal';
import type { Store } from '@keelson/core/storage-adapter';
import { tracedStore } from '../observe/traced-plane.ts';
import { KnownStores } from '../storage/known-stores.ts';
import { makeStore, type StoreContext } from '../storage/open-storage.ts';
import { PlaneStore } from '../storage/plane-store.ts';
import { PlaneStores, routeKinds } from '../storage/plane-stores.ts';
import { planStorage, type StorePlan } from '../storage/storage-plan.ts';
import type { ControlPlaneOptions } from './plane-options.ts';

/** Replaces a store that was created and not opened, for example by one that threads share. */
export type StoreWrapper = (name: string, store: Store) => Store;

/** Name of the option and URL of the store, without the password; undefined for a store that has no URL. */
function addressOf({ choice, source }: Pick<StorePlan, 'choice' | 'source'>): string | undefined {
  const url = typeof choice === 'string' ? choice : 'url' in choice ? choice.url : undefined;
  return typeof url === 'string' ? `${source}: ${withoutPassword(url)}` : undefined;
}

/** Creates the stores of the options without opening them. @throws UsageError for invalid options */
export async function makeStores(
  options: ControlPlaneOptions,
  kinds: readonly KindDefinition[],
  context: StoreContext,
  encryption: Encryption | undefined,
  wrap: StoreWrapper | undefined,
): Promise<PlaneStores> {
  const {
    history,
    reads = 'consistent',
    data,
    acceptNewStore = false,
    continueTokens: tokens,
    watchWindow = {},
    memoryBudgets,
    tracing,
  } = options;
  const plan = planStorage(options.storage ?? 'memory:', { reads, history }, 'storage');
  const storeOf = routeKinds(plan, kinds);
  const known =
    data === undefined
      ? undefined
      : new KnownStores({ directory: data, acceptNew: acceptNewStore, logger: context.logger });
  const configuration = kinds
    .map((kind) => `${kind.apiVersion}/${kind.kind}`)
    .sort()
    .join();
  const memory = new StorageMemory(context.clock, memoryBudgets, context.metrics);
  const stores: PlaneStore[] = [];
  for (const { name, reads: storeReads, ...rest } of plan.stores) {
    const opened = await makeStore({ name, reads: storeReads, ...rest }, context);
    const own = wrap?.(name, opened.store) ?? opened.store;
    // Calls of this thread are traced, also when another thread carries them out.
    const store = tracing ? tracedStore(own, tracing, opened.adapter, name) : own;
    const made = { ...opened, store: encryption?.wrap(name, store) ?? store };
    stores.push(
      new PlaneStore({
        name,
        made,
        address: addressOf(rest),
        reads: storeReads,
        watchWindow,
        memory,
        known,
        tokens,
        configuration,
        ...context,
      }),
    );
  }
  return new PlaneStores(stores, storeOf);
}
