import { isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { KindDefinition } from '@keelson/core';
import { UsageError } from '@keelson/core/internal';

function isKind(value: unknown): value is KindDefinition {
  return (
    typeof value === 'object' &&
    value !== null &&
    'kind' in value &&
    'apiVersion' in value &&
    'schema' in value &&
    'names' in value
  );
}

/** Imports modules that declare kinds: all exported kinds, and the kinds of a default export that is a list. */
export async function loadKinds(modules: readonly string[]): Promise<KindDefinition[]> {
  const kinds: KindDefinition[] = [];
  for (const name of modules) {
    const specifier = name.startsWith('.') || isAbsolute(name) ? pathToFileURL(resolve(name)).href : name;
    let exports: Readonly<Record<string, unknown>>;
    try {
      exports = (await import(specifier)) as Readonly<Record<string, unknown>>;
    } catch (error) {
      throw new UsageError(`--kinds ${name} cannot be loaded: ${(error as Error).message}`);
    }
    const found = new Set(Object.values(exports).flat().filter(isKind));
    if (found.size === 0) throw new UsageError(`--kinds ${name} exports no kind; export what defineKind returns`);
    kinds.push(...found);
  }
  return kinds;
}
