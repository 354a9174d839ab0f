export { type CriAdapterOptions, criAdapter, criAdapter as default } from './adapter.ts';
export type { PinnedTls } from './connection/cri-connection.ts';
export { createCriRuntime } from './create-cri-runtime.ts';
export type { CriRuntimeOptions } from './options.ts';
export {
  type CriPortHandle,
  type CriPortOptions,
  type CriServiceHandle,
  type CriServiceOptions,
  serveCri,
  serveCriAtPort,
} from './service/serve-cri.ts';
