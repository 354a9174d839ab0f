import type { Store } from '@keelson/core/storage-adapter';

/** Where a store is; goes to other processes as JSON. */
export type StoreSpec =
  | { readonly kind: 'memory' }
  | { readonly kind: 'lmdb'; readonly path: string }
  | { readonly kind: 'etcd'; readonly url: string; readonly prefix: string }
  | { readonly kind: 'postgres'; readonly url: string; readonly schema: string };

/** Only the adapter that is meant is loaded, as in a server. */
async function create(spec: StoreSpec): Promise<Store> {
  switch (spec.kind) {
    case 'memory': {
      const { MemoryStore } = await import('@keelson/storage-memory');
      return new MemoryStore();
    }
    case 'lmdb': {
      const { LmdbStore } = await import('@keelson/storage-lmdb');
      return new LmdbStore({ path: spec.path });
    }
    case 'etcd': {
      const { Etcd3Store } = await import('@keelson/storage-etcd3');
      return new Etcd3Store({ endpoints: [spec.url], prefix: spec.prefix });
    }
    case 'postgres': {
      const { PostgresStore } = await import('@keelson/storage-postgres');
      return new PostgresStore({ url: spec.url, schema: spec.schema });
    }
  }
}

/** Opens the store with its default options. */
export async function openStore(spec: StoreSpec): Promise<Store> {
  const store = await create(spec);
  await store.ready();
  return store;
}
