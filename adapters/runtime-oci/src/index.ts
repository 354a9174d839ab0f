export type { CgroupOptions } from '@keelson/container-monitor';
export { createOciRuntime } from './create-oci-runtime.ts';
export type { OciRuntimeOptions } from './options.ts';
