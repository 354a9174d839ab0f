import type { AdmissionPlugin } from '@keelson/core';
import {
  createCachedStorages,
  createContinueTokens,
  createResourceRegistry,
  namespaceLifecycle,
  type ResourceRegistry,
} from '@keelson/core/internal';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import { builtinKinds, Namespace } from '@keelson/kinds';
import { MemoryStore } from '@keelson/storage-memory';
import type { ExecutionContext } from 'ava';
import { call, type Served, type ServeOptions, serve } from './serve.ts';

export interface RealPlane extends Served {
  readonly registry: ResourceRegistry;
}

/** The whole way of a request: HTTP, registry, watch cache, memory. With a namespace `default`. */
export async function serveReal(
  t: ExecutionContext,
  { admission = [], ...options }: ServeOptions & { readonly admission?: readonly AdmissionPlugin[] } = {},
): Promise<RealPlane> {
  const clock = options.clock ?? systemClock;
  const store = new MemoryStore({ clock });
  const storages = createCachedStorages({ store, clock });
  const registry = createResourceRegistry({
    storages,
    tokens: createContinueTokens({ secret: Buffer.alloc(32, 7), fingerprint: 'test', clock }),
    clock,
    logger: silentLogger,
    admission: [namespaceLifecycle({ kind: Namespace, storage: storages.forKind(Namespace) }), ...admission],
    kinds: builtinKinds,
  });
  await storages.start();
  t.teardown(() => storages.stop());
  const served = await serve(t, { ...options, registry, clock });
  await call(served.port, 'POST', '/api/v1/namespaces', { body: '{"metadata":{"name":"default"}}' });
  return { ...served, registry };
}
