export type { CgroupOptions } from '@keelson/container-monitor';
export { createProcessRuntime } from './create-process-runtime.ts';
export type { ProcessRuntimeOptions } from './options.ts';
