export { createProcessRuntime } from './create-process-runtime.ts';
export type { CgroupOptions, ProcessRuntimeOptions } from './options.ts';
