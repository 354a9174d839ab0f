export { type EngineAdapterOptions, engineAdapter, engineAdapter as default } from './adapter.ts';
export type { EngineRuntimeOptions } from './containers/engine-context.ts';
export { createEngineRuntime } from './create-engine-runtime.ts';
