export { type EngineAdapterOptions, engineAdapter, engineAdapter as default } from './adapter.ts';
export { createEngineRuntime } from './create-engine-runtime.ts';
export type { EngineRuntimeOptions } from './options.ts';
