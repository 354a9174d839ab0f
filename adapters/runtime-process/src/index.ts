export type { CgroupOptions } from '@keelson/container-monitor';
export { type ProcessAdapterOptions, processAdapter, processAdapter as default } from './adapter.ts';
export { createProcessRuntime } from './create-process-runtime.ts';
export type { ProcessRuntimeOptions } from './options.ts';
