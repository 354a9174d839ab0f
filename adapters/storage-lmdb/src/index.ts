export { type LmdbAdapterOptions, lmdbAdapter, lmdbAdapter as default } from './adapter.ts';
export { LmdbStore, type LmdbStoreOptions } from './lmdb-store.ts';
