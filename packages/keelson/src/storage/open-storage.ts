import { isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Schema } from '@keelson/core';
import { DecodeTypeError, decoderOf, didYouMean, UsageError, withoutPassword } from '@keelson/core/internal';
import {
  type BindingModule,
  type Clock,
  ClockToken,
  type Logger,
  LoggerToken,
  type Metrics,
  MetricsToken,
} from '@keelson/core/runtime';
import type { StorageAdapter, Store } from '@keelson/core/storage-adapter';
import { StoreToken } from '@keelson/core/storage-adapter';
import { type AdapterChoice, type HistoryWindow, isStore } from '../config/storage-choice.ts';
import { labelledMetrics } from '../observe/labelled-metrics.ts';
import { resolveToken } from './resolve-token.ts';
import type { StorePlan } from './storage-plan.ts';

/** Packages of the URL schemes of `--storage`. */
const packages: Readonly<Record<string, string>> = {
  memory: '@keelson/storage-memory',
  lmdb: '@keelson/storage-lmdb',
  etcd: '@keelson/storage-etcd3',
  etcds: '@keelson/storage-etcd3',
  postgres: '@keelson/storage-postgres',
  postgresql: '@keelson/storage-postgres',
};

/** Dependencies of an adapter. */
export interface StoreContext {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** A store that is created but not opened. */
export interface MadeStore {
  readonly store: Store;
  /** Name of the adapter; `instance` for a store passed by code. */
  readonly adapter: string;
}

function specifierOf(name: string): string {
  if (name.startsWith('.') || isAbsolute(name)) return pathToFileURL(resolve(name)).href;
  return packages[name] ?? name;
}

async function importAdapter(name: string, source: string): Promise<StorageAdapter> {
  const specifier = specifierOf(name);
  let module: { readonly default?: unknown };
  try {
    module = (await import(specifier)) as { readonly default?: unknown };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new UsageError(
      `${source}: the storage adapter ${specifier} is not installed; ` +
        `install it with npm install ${specifier}, or choose memory: or lmdb:PATH`,
    );
  }
  const adapter = module.default as Partial<StorageAdapter> | undefined;
  if (
    typeof adapter?.name !== 'string' ||
    typeof adapter.module !== 'function' ||
    adapter.optionsSchema === undefined
  ) {
    throw new UsageError(`${source}: ${specifier} does not export a storage adapter by default`);
  }
  return adapter as StorageAdapter;
}

function checkedOptions(adapter: StorageAdapter, options: unknown, source: string): unknown {
  try {
    const { value, errors, unknownFields } = decoderOf(adapter.optionsSchema)(options);
    if (unknownFields[0] !== undefined)
      throw new UsageError(`${source}: ${adapter.name} has no option ${unknownFields[0]}`);
    if (errors[0] !== undefined) throw new UsageError(`${source}: ${errors[0].field}: ${errors[0].message}`);
    return value;
  } catch (error) {
    if (error instanceof DecodeTypeError) throw new UsageError(`${source}: ${error.path} must be ${error.expected}`);
    throw error;
  }
}

/** The adapter of a choice and its options, without the settings common to all adapters. */
async function adapterAndOptions(choice: string | AdapterChoice, source: string) {
  if (typeof choice !== 'string') {
    const { adapter: name, reads: _reads, history: _history, ...options } = choice;
    return { adapter: await importAdapter(name, source), options: options as Readonly<Record<string, unknown>> };
  }
  const scheme = /^([a-z][a-z0-9]*):/.exec(choice)?.[1];
  if (scheme === undefined || packages[scheme] === undefined) {
    const known = Object.keys(packages);
    throw new UsageError(
      `${source} ${JSON.stringify(withoutPassword(choice))} must begin with one of ${known.map((word) => `${word}:`).join(' ')}` +
        didYouMean(scheme ?? choice, known),
    );
  }
  const adapter = await importAdapter(scheme, source);
  try {
    const options = adapter.parseUrl(choice.slice(scheme.length + 1), scheme) as Readonly<Record<string, unknown>>;
    return { adapter, options };
  } catch (error) {
    throw new UsageError(`${source}: ${(error as Error).message}`);
  }
}

function withHistory(
  adapter: StorageAdapter,
  options: Readonly<Record<string, unknown>>,
  plan: StorePlan,
  logger: Logger,
) {
  const { history } = plan;
  if (history === undefined) return options;
  if (takesHistory(adapter.optionsSchema)) {
    // The setting in a URL takes precedence over the setting for all stores.
    const own = options['history'] as HistoryWindow | undefined;
    return { ...options, history: plan.historyRequired ? { ...own, ...history } : { ...history, ...own } };
  }
  if (plan.historyRequired) throw new UsageError(`${plan.source}: ${adapter.name} does not support a history window`);
  logger.warn('the adapter of this store does not support a history window', {
    component: 'storage',
    store: plan.name,
    adapter: adapter.name,
  });
  return options;
}

/**
 * Creates the store of a plan without opening it. The bindings of each adapter are resolved separately, so that several
 * adapters can bind the same tokens. The store's log entries contain its name; its metrics carry the label `storage`.
 */
export async function makeStore(plan: StorePlan, context: StoreContext): Promise<MadeStore> {
  const { choice, source, name } = plan;
  if (isStore(choice)) {
    if (plan.historyRequired)
      throw new UsageError(`${source}: the history window of a store instance must be passed to its constructor`);
    return { store: choice, adapter: 'instance' };
  }
  const isUrl = typeof choice === 'object' && !('adapter' in choice);
  const { adapter, options } = await adapterAndOptions(
    isUrl ? (choice.url as string) : (choice as string | AdapterChoice),
    source,
  );
  const logger = context.logger.child({ store: name });
  const checked = checkedOptions(adapter, withHistory(adapter, options, plan, logger), source);
  const dependencies: BindingModule = (bind) => {
    bind(ClockToken, [], () => context.clock);
    bind(LoggerToken, [], () => logger);
    bind(MetricsToken, [], () => labelledMetrics(context.metrics, { storage: name }));
  };
  try {
    return { store: resolveToken(StoreToken, adapter.module(checked), dependencies), adapter: adapter.name };
  } catch (error) {
    // No store is opened here, so that an error means invalid options.
    throw new UsageError(`${source}: ${(error as Error).message}`);
  }
}

/** True when the options of an adapter have the common key `history: { minChanges, minAgeMs }`. */
export function takesHistory(options: Schema<unknown>): boolean {
  const { node } = options;
  const history = node.type === 'message' ? node.fields['history']?.schema.node : undefined;
  if (history?.type !== 'message') return false;
  return history.fields['minChanges'] !== undefined && history.fields['minAgeMs'] !== undefined;
}
