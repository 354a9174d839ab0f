import type { Store, WindowLimits } from '@keelson/core';
import { suggestion, UsageError } from '../base/usage-error.ts';
import { duration, isObject, refuseUnknownKeys, text, wholeNumber } from './raw-values.ts';

/**
 * Which state a get or list over HTTP shows that names no resourceVersion: the newest, or what the server has in its
 * cache.
 */
export const readModes = ['consistent', 'any'] as const;
export type ReadMode = (typeof readModes)[number];

/** What a store keeps for readers and watchers of the past; both hold, so whichever keeps more. */
export interface HistoryWindow {
  readonly minChanges?: number;
  readonly minAgeMs?: number;
}

/** The history window as a config file spells it: `minAge` is a duration such as `10m`. */
export interface HistoryChoice extends HistoryWindow {
  readonly minAge?: string;
}

/** What may be said about a store whatever its adapter. */
export interface StoreSettings {
  readonly reads?: ReadMode;
  readonly history?: HistoryChoice;
}

/** A storage URL with settings. */
export interface UrlChoice extends StoreSettings {
  readonly url: string;
}

/** An adapter by its word, package name or path, with its own options. */
export interface AdapterChoice extends StoreSettings {
  readonly adapter: string;
  readonly [option: string]: unknown;
}

/** One store. A `Store` instance can be given by code only. */
export type StoreChoice = string | UrlChoice | AdapterChoice | Store;

/** Sends kinds to a store. */
export interface StorageRoute {
  /**
   * Names the store in logs, metrics, health checks and in the record of known stores. Default: made of group and
   * resources.
   */
  readonly name?: string;
  /** An API group; '' is the core group. */
  readonly group: string;
  /** Plural names; absent = every resource of the group that has no route of its own. */
  readonly resources?: readonly string[];
  readonly storage: StoreChoice;
}

/** Several stores. */
export interface StorageRouting {
  /** Holds everything that no route names. */
  readonly default: StoreChoice;
  readonly routes: readonly StorageRoute[];
}

export type StorageChoice = StoreChoice | StorageRouting;

/** True for a store that was opened by code. */
export function isStore(choice: unknown): choice is Store {
  return isObject(choice) && typeof choice['write'] === 'function';
}

/** True for a choice of several stores. */
export function isRouting(choice: StorageChoice): choice is StorageRouting {
  return typeof choice === 'object' && !isStore(choice) && 'default' in choice;
}

/** Reads `consistent` or `any`. */
export function parseReads(raw: unknown, source: string): ReadMode {
  const mode = readModes.find((known) => known === raw);
  if (mode !== undefined) return mode;
  throw new UsageError(`${source} must be one of ${readModes.join(', ')}${suggestion(String(raw), readModes)}`);
}

/** Reads `{ minChanges, minAge }`; `minAgeMs` may be given instead of `minAge`. */
export function parseHistory(raw: unknown, source: string): HistoryWindow {
  if (!isObject(raw)) throw new UsageError(`${source} must be an object with minChanges and minAge`);
  refuseUnknownKeys(raw, ['minChanges', 'minAge', 'minAgeMs'], source);
  const { minChanges, minAge, minAgeMs } = raw;
  if (minAge !== undefined && minAgeMs !== undefined) throw new UsageError(`${source} gives both minAge and minAgeMs`);
  const ageMs = minAge === undefined ? minAgeMs : duration(minAge, `${source}.minAge`);
  return {
    ...(minChanges === undefined ? {} : { minChanges: wholeNumber(minChanges, `${source}.minChanges`) }),
    ...(ageMs === undefined ? {} : { minAgeMs: wholeNumber(ageMs, `${source}.minAgeMs`) }),
  };
}

function parseStore(raw: unknown, source: string): StoreChoice {
  if (isStore(raw)) return raw;
  if (!isObject(raw)) return text(raw, source);
  const settings = {
    ...(raw['reads'] === undefined ? {} : { reads: parseReads(raw['reads'], `${source}.reads`) }),
    ...(raw['history'] === undefined ? {} : { history: parseHistory(raw['history'], `${source}.history`) }),
  };
  if (raw['adapter'] !== undefined) return { ...raw, ...settings, adapter: text(raw['adapter'], `${source}.adapter`) };
  if (raw['url'] === undefined)
    throw new UsageError(
      `${source} as an object needs "url", or "adapter" (the name of a package), or "default" and "routes"`,
    );
  refuseUnknownKeys(raw, ['url', 'reads', 'history'], source);
  return { ...settings, url: text(raw['url'], `${source}.url`) };
}

function parseRoute(raw: unknown, source: string): StorageRoute {
  if (!isObject(raw)) throw new UsageError(`${source} must be an object with group, resources and storage`);
  refuseUnknownKeys(raw, ['name', 'group', 'resources', 'storage'], source);
  const { name, group, resources, storage } = raw;
  if (typeof group !== 'string')
    throw new UsageError(`${source}.group must be the name of an API group ("" is the core group)`);
  if (name !== undefined && (typeof name !== 'string' || !/^[a-z0-9][a-z0-9.+-]{0,62}$/.test(name)))
    throw new UsageError(
      `${source}.name must be a short word of a-z, 0-9, ".", "-" and "+", not ${JSON.stringify(name)}`,
    );
  if (resources !== undefined && (!Array.isArray(resources) || resources.length === 0))
    throw new UsageError(`${source}.resources must be a list of plural names; leave it out for the whole group`);
  return {
    ...(name === undefined ? {} : { name }),
    group,
    ...(resources === undefined
      ? {}
      : { resources: resources.map((item, i) => text(item, `${source}.resources[${i}]`)) }),
    storage: parseStore(storage, `${source}.storage`),
  };
}

/** Reads what a config file, a flag or code says about storage. Throws `UsageError`. */
export function parseStorage(raw: unknown, source: string): StorageChoice {
  if (!isObject(raw) || isStore(raw) || (raw['default'] === undefined && raw['routes'] === undefined))
    return parseStore(raw, source);
  refuseUnknownKeys(raw, ['default', 'routes'], source);
  if (raw['default'] === undefined) throw new UsageError(`${source} has routes but no default`);
  const routes = raw['routes'] ?? [];
  if (!Array.isArray(routes)) throw new UsageError(`${source}.routes must be a list`);
  return {
    default: parseStore(raw['default'], `${source}.default`),
    routes: routes.map((route, i) => parseRoute(route, `${source}.routes[${i}]`)),
  };
}

/**
 * The latest changes that a server keeps in memory for watches and exact lists; what is older is read from the store's
 * history. Absent = what {@link WindowLimits} of the watch cache has as its default.
 */
export type WatchWindow = Partial<Pick<WindowLimits, 'maxEvents' | 'maxBytes' | 'maxTotalBytes' | 'maxAgeMs'>>;

const numbers = ['maxEvents', 'maxBytes', 'maxTotalBytes'] as const;

/** Reads `{ maxEvents, maxBytes, maxTotalBytes, maxAge }`; `maxAge` is a duration such as `5m`. @throws UsageError */
export function parseWatchWindow(raw: unknown, source: string): WatchWindow {
  if (!isObject(raw)) throw new UsageError(`${source} must be an object with ${numbers.join(', ')} and maxAge`);
  refuseUnknownKeys(raw, [...numbers, 'maxAge'], source);
  const given = numbers.filter((key) => raw[key] !== undefined);
  return {
    ...Object.fromEntries(given.map((key) => [key, wholeNumber(raw[key], `${source}.${key}`, 1)])),
    ...(raw['maxAge'] === undefined ? {} : { maxAgeMs: duration(raw['maxAge'], `${source}.maxAge`) }),
  };
}
