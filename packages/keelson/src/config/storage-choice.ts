import {
  isJsonObject,
  nonNegativeDuration,
  oneOf,
  rejectUnknownKeys,
  requiredText,
  UsageError,
  type WindowLimits,
  wholeNumber,
} from '@keelson/core/internal';

import type { Store } from '@keelson/core/storage-adapter';

/**
 * The state that a get or list over HTTP without resourceVersion returns: the newest one, or that of the watch cache.
 */
export const readModes = ['consistent', 'any'] as const;
/**
 * The state that gets and lists over HTTP without resourceVersion return: `consistent`, the newest one, or `any`, that
 * of the watch cache.
 */
export type ReadMode = (typeof readModes)[number];

/** The history that a store keeps for watches and pages: at least this many changes, and all changes of this time. */
export interface HistoryWindow {
  readonly minChanges?: number;
  readonly minAgeMs?: number;
}

/** The history window in a config file: `minAge` is a duration such as `10m`. */
export interface HistoryChoice extends HistoryWindow {
  readonly minAge?: string;
}

/** Settings of a store that do not depend on its adapter. */
export interface StoreSettings {
  readonly reads?: ReadMode;
  readonly history?: HistoryChoice;
}

/** A storage URL with settings. */
export interface UrlChoice extends StoreSettings {
  readonly url: string;
}

/** An adapter by its short name, package name or path, with its options. */
export interface AdapterChoice extends StoreSettings {
  readonly adapter: string;
  readonly [option: string]: unknown;
}

/** One store. A `Store` instance can be passed by code only. */
export type StoreChoice = string | UrlChoice | AdapterChoice | Store;

/** Assigns resources of an API group to a store. */
export interface StorageRoute {
  /**
   * Name of the store in logs, metrics, health checks and in the record of known stores. Default: derived from group
   * and resources.
   */
  readonly name?: string;
  /** An API group; '' is the core group. */
  readonly group: string;
  /** Plural names; absent: every resource of the group without a route of its own. */
  readonly resources?: readonly string[];
  readonly storage: StoreChoice;
}

/** Several stores. */
export interface StorageRouting {
  /** The store of all kinds without a route. */
  readonly default: StoreChoice;
  readonly routes: readonly StorageRoute[];
}

/** One store for all kinds, or routes of kinds to several stores. */
export type StorageChoice = StoreChoice | StorageRouting;

/** True for a `Store` instance. */
export function isStore(choice: unknown): choice is Store {
  return isJsonObject(choice) && typeof choice['write'] === 'function';
}

/** True for a choice of several stores. */
export function isRouting(choice: StorageChoice): choice is StorageRouting {
  return typeof choice === 'object' && !isStore(choice) && 'default' in choice;
}

export const readMode = oneOf('MODE', readModes);

/** Reads `{ minChanges, minAge }`; `minAgeMs` may be given instead of `minAge`. */
export function parseHistory(raw: unknown, source: string): HistoryWindow {
  if (!isJsonObject(raw)) throw new UsageError(`${source} must be an object with minChanges and minAge`);
  rejectUnknownKeys(raw, ['minChanges', 'minAge', 'minAgeMs'], source);
  const { minChanges, minAge, minAgeMs } = raw;
  if (minAge !== undefined && minAgeMs !== undefined)
    throw new UsageError(`${source} contains both minAge and minAgeMs`);
  const ageMs = minAge === undefined ? minAgeMs : nonNegativeDuration(minAge, `${source}.minAge`);
  return {
    ...(minChanges === undefined ? {} : { minChanges: wholeNumber(minChanges, `${source}.minChanges`) }),
    ...(ageMs === undefined ? {} : { minAgeMs: wholeNumber(ageMs, `${source}.minAgeMs`) }),
  };
}

function parseStore(raw: unknown, source: string): StoreChoice {
  if (isStore(raw)) return raw;
  if (!isJsonObject(raw)) return requiredText(raw, source);
  const settings = {
    ...(raw['reads'] === undefined ? {} : { reads: readMode.fromFile(raw['reads'], `${source}.reads`, '') }),
    ...(raw['history'] === undefined ? {} : { history: parseHistory(raw['history'], `${source}.history`) }),
  };
  if (raw['adapter'] !== undefined)
    return { ...raw, ...settings, adapter: requiredText(raw['adapter'], `${source}.adapter`) };
  if (raw['url'] === undefined)
    throw new UsageError(
      `${source} as an object must contain "url", or "adapter" (the name of a package), or "default" and "routes"`,
    );
  rejectUnknownKeys(raw, ['url', 'reads', 'history'], source);
  return { ...settings, url: requiredText(raw['url'], `${source}.url`) };
}

function parseRoute(raw: unknown, source: string): StorageRoute {
  if (!isJsonObject(raw)) throw new UsageError(`${source} must be an object with group, resources and storage`);
  rejectUnknownKeys(raw, ['name', 'group', 'resources', 'storage'], source);
  const { name, group, resources, storage } = raw;
  if (typeof group !== 'string')
    throw new UsageError(`${source}.group must be the name of an API group ("" is the core group)`);
  if (name !== undefined && (typeof name !== 'string' || !/^[a-z0-9][a-z0-9.+-]{0,62}$/.test(name)))
    throw new UsageError(
      `${source}.name must consist of at most 63 of the characters a-z, 0-9, ".", "-" and "+", ` +
        `not ${JSON.stringify(name)}`,
    );
  if (resources !== undefined && (!Array.isArray(resources) || resources.length === 0))
    throw new UsageError(`${source}.resources must be a list of plural names; omit it for the whole group`);
  return {
    ...(name === undefined ? {} : { name }),
    group,
    ...(resources === undefined
      ? {}
      : { resources: resources.map((item, i) => requiredText(item, `${source}.resources[${i}]`)) }),
    storage: parseStore(storage, `${source}.storage`),
  };
}

/** Parses the storage option of a config file, a flag or code. @throws UsageError */
export function parseStorage(raw: unknown, source: string): StorageChoice {
  if (!isJsonObject(raw) || isStore(raw) || (raw['default'] === undefined && raw['routes'] === undefined))
    return parseStore(raw, source);
  rejectUnknownKeys(raw, ['default', 'routes'], source);
  if (raw['default'] === undefined) throw new UsageError(`${source} has routes but no default`);
  const routes = raw['routes'] ?? [];
  if (!Array.isArray(routes)) throw new UsageError(`${source}.routes must be a list`);
  return {
    default: parseStore(raw['default'], `${source}.default`),
    routes: routes.map((route, i) => parseRoute(route, `${source}.routes[${i}]`)),
  };
}

/**
 * Limits of the latest changes that a server keeps in memory for watches and exact lists; older changes are read from
 * the history of the store. Absent limits have the defaults of {@link WindowLimits}.
 */
export type WatchWindow = Partial<Pick<WindowLimits, 'maxEvents' | 'maxBytes' | 'maxTotalBytes' | 'maxAgeMs'>>;

const numbers = ['maxEvents', 'maxBytes', 'maxTotalBytes'] as const;

/** Parses `{ maxEvents, maxBytes, maxTotalBytes, maxAge }`; `maxAge` is a duration such as `5m`. @throws UsageError */
export function parseWatchWindow(raw: unknown, source: string): WatchWindow {
  if (!isJsonObject(raw)) throw new UsageError(`${source} must be an object with ${numbers.join(', ')} and maxAge`);
  rejectUnknownKeys(raw, [...numbers, 'maxAge'], source);
  const given = numbers.filter((key) => raw[key] !== undefined);
  return {
    ...Object.fromEntries(given.map((key) => [key, wholeNumber(raw[key], `${source}.${key}`, 1)])),
    ...(raw['maxAge'] === undefined ? {} : { maxAgeMs: nonNegativeDuration(raw['maxAge'], `${source}.maxAge`) }),
  };
}
