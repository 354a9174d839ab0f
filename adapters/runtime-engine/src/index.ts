export { createEngineRuntime } from './create-engine-runtime.ts';
export type { EngineRuntimeOptions } from './options.ts';
