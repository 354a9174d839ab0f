export { createCriRuntime } from './create-cri-runtime.ts';
export type { CriRuntimeOptions } from './options.ts';
