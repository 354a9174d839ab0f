export { etcd3Adapter, etcd3Adapter as default } from './adapter.ts';
export type { Etcd3AdapterOptions } from './adapter-options.ts';
export { Etcd3Store, type Etcd3StoreOptions } from './etcd3-store.ts';
