import { isDeepStrictEqual } from 'node:util';
import { UsageError } from '@keelson/core/internal';
import {
  type HistoryWindow,
  isRouting,
  isStore,
  parseStorage,
  type ReadMode,
  type StorageChoice,
  type StorageRoute,
  type StoreChoice,
} from '../config/storage-choice.ts';

/** A store to be opened. */
export interface StorePlan {
  /** `default`, or the name of the first route to the store. */
  readonly name: string;
  readonly choice: StoreChoice;
  /** The option that made the choice, for messages. */
  readonly source: string;
  readonly reads: ReadMode;
  readonly history: HistoryWindow | undefined;
  /** True: the store must support the history window. False: it is used if supported. */
  readonly historyRequired: boolean;
}

/** Resources that are assigned to a store. */
export interface RoutePlan {
  readonly group: string;
  /** Plural names of the resources. Absent: all resources of the group without a route of their own. */
  readonly resources?: readonly string[];
  readonly store: string;
  readonly source: string;
}

/** The stores, and the assignment of resources to them. The first store is the default. */
export interface StoragePlan {
  readonly stores: readonly StorePlan[];
  readonly routes: readonly RoutePlan[];
}

export interface StorageDefaults {
  readonly reads: ReadMode;
  readonly history?: HistoryWindow | undefined;
}

/**
 * Derives the stores from the storage option. Routes with equal choices share one store unless their names differ, for
 * example for two stores in memory. @throws UsageError
 */
export function planStorage(raw: StorageChoice, defaults: StorageDefaults, source: string): StoragePlan {
  const choice = parseStorage(raw, source);
  if (!isRouting(choice)) return { stores: [storePlan('default', choice, defaults, source)], routes: [] };
  const stores = [storePlan('default', choice.default, defaults, `${source}.default`)];
  const seen = new Set<string>();
  const routes = choice.routes.map((route, i): RoutePlan => {
    const at = `${source}.routes[${i}]`;
    for (const subject of subjectsOf(route)) {
      if (seen.has(subject)) throw new UsageError(`${at}: ${subject} is routed twice`);
      seen.add(subject);
    }
    let store = stores.find(
      (known) => (route.name === undefined || route.name === known.name) && sameChoice(known.choice, route.storage),
    );
    if (store === undefined) {
      const name = route.name ?? nameOf(route);
      if (stores.some((known) => known.name === name))
        throw new UsageError(`${at}: there is another store with the name ${name}; give one of them another name`);
      store = storePlan(name, route.storage, defaults, `${at}.storage`);
      stores.push(store);
    }
    const { group, resources } = route;
    return { group, store: store.name, source: at, ...(resources === undefined ? {} : { resources }) };
  });
  return { stores, routes };
}

function storePlan(name: string, choice: StoreChoice, defaults: StorageDefaults, source: string): StorePlan {
  const own: { readonly reads?: ReadMode; readonly history?: HistoryWindow } =
    typeof choice === 'object' && !isStore(choice) ? choice : {};
  return {
    name,
    choice,
    source,
    reads: own.reads ?? defaults.reads,
    history: own.history ?? defaults.history,
    historyRequired: own.history !== undefined,
  };
}

function subjectsOf({ group, resources }: StorageRoute): string[] {
  if (resources === undefined) return [group === '' ? 'the core group' : `the group ${group}`];
  return resources.map((resource) => (group === '' ? resource : `${resource}.${group}`));
}

function sameChoice(a: StoreChoice, b: StoreChoice): boolean {
  return isStore(a) || isStore(b) ? a === b : isDeepStrictEqual(a, b);
}

/** `events`, `deployments+daemonsets.apps`, `core`, `apps`. */
function nameOf({ group, resources }: StorageRoute): string {
  if (resources === undefined) return group === '' ? 'core' : group;
  return `${resources.join('+')}${group === '' ? '' : `.${group}`}`;
}
