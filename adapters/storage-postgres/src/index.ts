export { type PostgresAdapterOptions, postgresAdapter, postgresAdapter as default } from './adapter.ts';
export { PostgresStore } from './postgres-store.ts';
export type { HistoryOptions, NotifyMode, PostgresStoreOptions } from './settings.ts';
