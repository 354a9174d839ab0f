export type { CgroupOptions } from '@keelson/container-monitor';
export { type OciAdapterOptions, ociAdapter, ociAdapter as default } from './adapter.ts';
export { createOciRuntime } from './create-oci-runtime.ts';
export type { OciRuntimeOptions } from './options.ts';
