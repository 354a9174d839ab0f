import { isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { DecodeTypeError, decoderOf, type StorageAdapter } from '@keelson/core';
import type { ContainerModule } from 'inversify';
import type { AdapterChoice } from '../config/options.ts';
import { suggestion } from '../config/suggest.ts';
import { UsageError } from '../config/usage-error.ts';

/** Packages behind the words of `--storage` URLs. */
const packages: Readonly<Record<string, string>> = {
  memory: '@keelson/storage-memory',
  lmdb: '@keelson/storage-lmdb',
  etcd: '@keelson/storage-etcd3',
  etcds: '@keelson/storage-etcd3',
  postgres: '@keelson/storage-postgres',
  postgresql: '@keelson/storage-postgres',
};

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
      `${source}: the storage adapter ${specifier} is not installed; install the package or choose memory: or lmdb:PATH`,
    );
  }
  const adapter = module.default as Partial<StorageAdapter> | undefined;
  if (typeof adapter?.name !== 'string' || typeof adapter.module !== 'function' || adapter.optionsSchema === undefined) {
    throw new UsageError(`${source}: ${specifier} does not export a storage adapter by default`);
  }
  return adapter as StorageAdapter;
}

function checkedOptions(adapter: StorageAdapter, options: unknown, source: string): unknown {
  try {
    const { value, errors, unknownFields } = decoderOf(adapter.optionsSchema)(options);
    if (unknownFields[0] !== undefined) throw new UsageError(`${source}: ${adapter.name} has no option ${unknownFields[0]}`);
    if (errors[0] !== undefined) throw new UsageError(`${source}: ${errors[0].field}: ${errors[0].message}`);
    return value;
  } catch (error) {
    if (error instanceof DecodeTypeError) throw new UsageError(`${source}: ${error.path} must be ${error.expected}`);
    throw error;
  }
}

/** The module that binds the chosen store; nothing is opened yet. */
export async function storageModule(choice: string | AdapterChoice, source = '--storage'): Promise<ContainerModule> {
  if (typeof choice !== 'string') {
    const { adapter: name, ...options } = choice;
    const adapter = await importAdapter(name, source);
    return adapter.module(checkedOptions(adapter, options, source));
  }
  const scheme = /^([a-z][a-z0-9]*):/.exec(choice)?.[1];
  if (scheme === undefined || packages[scheme] === undefined) {
    const known = Object.keys(packages);
    throw new UsageError(
      `${source} ${JSON.stringify(choice)} must begin with one of ${known.map((word) => `${word}:`).join(' ')}${suggestion(scheme ?? choice, known)}`,
    );
  }
  const adapter = await importAdapter(scheme, source);
  try {
    return adapter.module(checkedOptions(adapter, adapter.parseUrl(choice.slice(scheme.length + 1), scheme), source));
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${source}: ${(error as Error).message}`);
  }
}
