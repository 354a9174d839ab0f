export { type CriAdapterOptions, criAdapter, criAdapter as default } from './adapter.ts';
export type { PinnedTls } from './connection/pinned-tls.ts';
export { createCriRuntime } from './create-cri-runtime.ts';
export type { CriRuntimeOptions } from './options.ts';
export { type CriServiceHandle, type CriServiceOptions, serveCri } from './service/serve-cri.ts';
export { type CriPortHandle, type CriPortOptions, serveCriAtPort } from './service/serve-cri-at-port.ts';
