import { createInProcessClient } from '@keelson/client';
import {
  type AdmissionPlugin,
  type ApiClient,
  internalContext,
  isStatusError,
  type KindDefinition,
  type RequestContext,
  type Status,
} from '@keelson/core';
import {
  type Body,
  createCachedStorages,
  createContinueTokens,
  createDirectStorages,
  createResourceRegistry,
  type NameGenerator,
  namespaceLifecycle,
  type ResourceRegistry,
  type ResourceService,
  type ResourceStorages,
  type SelectParameters,
  type WriteParameters,
} from '@keelson/core/internal';
import { FakeClock, silentLogger } from '@keelson/core/runtime';
import { MemoryStore } from '@keelson/storage-memory';
import type { ExecutionContext } from 'ava';
import type { FormContext } from './both-forms.ts';
import { kinds, Namespace } from './fixtures.ts';

export interface Plane {
  readonly clock: FakeClock;
  readonly store: MemoryStore;
  readonly storages: ResourceStorages;
  readonly registry: ResourceRegistry;
  readonly client: ApiClient;
  /** Warnings that the client was given, oldest first. */
  readonly warnings: string[];
  service(kind: KindDefinition): ResourceService;
}

export interface PlaneOptions {
  readonly admission?: readonly AdmissionPlugin[];
  readonly lifecycle?: boolean;
  readonly generateName?: NameGenerator;
  readonly selfLinks?: boolean;
  /** Puts something between the registry and the storages. */
  readonly wrap?: (storages: ResourceStorages) => ResourceStorages;
  readonly kinds?: readonly KindDefinition[];
}

/** A registry over a memory store, with a client of its own. */
export async function createPlane(t: ExecutionContext<FormContext>, options: PlaneOptions = {}): Promise<Plane> {
  const clock = new FakeClock(Date.UTC(2026, 0, 2, 3, 4, 5, 678));
  const store = new MemoryStore({ clock });
  await store.ready();
  const plain =
    t.context.form === 'direct' ? createDirectStorages({ store, clock }) : createCachedStorages({ store, clock });
  const storages = options.wrap?.(plain) ?? plain;
  await storages.start();
  t.teardown(async () => {
    await storages.stop();
    await store.close();
  });
  const registry = createResourceRegistry({
    storages,
    tokens: createContinueTokens({ secret: Buffer.alloc(32, 7), fingerprint: 'test', clock }),
    clock,
    logger: silentLogger,
    admission: [
      ...(options.lifecycle ? [namespaceLifecycle({ kind: Namespace, storage: storages.forKind(Namespace) })] : []),
      ...(options.admission ?? []),
    ],
    kinds: options.kinds ?? kinds,
    ...(options.generateName ? { generateName: options.generateName } : {}),
    ...(options.selfLinks ? { selfLinks: true } : {}),
  });
  const warnings: string[] = [];
  return {
    clock,
    store,
    storages,
    registry,
    client: createInProcessClient(registry, { clock, onWarning: (text) => warnings.push(text) }),
    warnings,
    service: (kind) => {
      const service = registry.find({ group: kind.group, version: kind.version, resource: kind.names.plural });
      if (service === undefined) throw new Error(`no service of ${kind.kind}`);
      return service;
    },
  };
}

export const json = (value: unknown): Body => ({ bytes: Buffer.from(JSON.stringify(value)), format: 'json' });
export const text = (value: string): Body => ({ bytes: Buffer.from(value), format: 'json' });
export const lenient: WriteParameters = { dryRun: false, fieldValidation: 'Ignore' };
export const everything: SelectParameters = { resourceVersion: '' };

export function contextWith(warn: (text: string) => void): RequestContext {
  return { ...internalContext(), warn };
}

/** The Status of the StatusError that `run` must fail with. */
export async function failure(run: () => Promise<unknown>): Promise<Status> {
  try {
    await run();
  } catch (error) {
    if (isStatusError(error)) return error.status;
    throw error;
  }
  throw new Error('expected a failure');
}

/** Number of keys in the store. */
export async function storedCount(plane: Plane): Promise<number> {
  return (await plane.store.count({ start: '/', end: '0' })).count;
}
