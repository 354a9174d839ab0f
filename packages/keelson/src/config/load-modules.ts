import { isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { AnyController } from '@keelson/controller-kit';
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

function isController(value: unknown): value is AnyController {
  return (
    typeof value === 'object' &&
    value !== null &&
    'name' in value &&
    'kind' in value &&
    isKind(value.kind) &&
    'reconcile' in value &&
    typeof value.reconcile === 'function'
  );
}

/** Imports modules that declare kinds: all exported kinds, and the kinds of a default export that is a list. */
export async function loadKinds(modules: readonly string[], option = '--kinds'): Promise<KindDefinition[]> {
  const kinds: KindDefinition[] = [];
  for (const name of modules) {
    const found = (await exportsOf(option, name)).filter(isKind);
    if (found.length === 0) throw new UsageError(`${option} ${name} exports no kind; export what defineKind returns`);
    kinds.push(...found);
  }
  return kinds;
}

/** Replaces entries that are modules, which contain a slash, by the controllers that the modules export. */
export async function loadControllers(entries: readonly string[]): Promise<(string | AnyController)[]> {
  const controllers: (string | AnyController)[] = [];
  for (const entry of entries) {
    if (!entry.includes('/')) {
      controllers.push(entry);
      continue;
    }
    const found = (await exportsOf('--controllers', entry)).filter(isController);
    if (found.length === 0)
      throw new UsageError(
        `--controllers ${entry} exports no controller; export values of the type ControllerDefinition`,
      );
    controllers.push(...found);
  }
  return controllers;
}

/** The exported values of a module, and the elements of exported lists, each once. */
async function exportsOf(option: string, name: string): Promise<unknown[]> {
  const specifier = name.startsWith('.') || isAbsolute(name) ? pathToFileURL(resolve(name)).href : name;
  try {
    const exports = (await import(specifier)) as Readonly<Record<string, unknown>>;
    return [...new Set(Object.values(exports).flat())];
  } catch (error) {
    throw new UsageError(`${option} ${name} cannot be loaded: ${(error as Error).message}`);
  }
}
