export { type MemoryAdapterOptions, memoryAdapter, memoryAdapter as default } from './adapter.ts';
export { type HistoryOptions, MemoryStore, type MemoryStoreOptions } from './memory-store.ts';
