export { createCriRuntime } from './create-cri-runtime.ts';
export type { CriRuntimeOptions } from './options.ts';
export { type CriServiceHandle, type CriServiceOptions, serveCri } from './service/serve-cri.ts';
