export { RegistryError, type RegistryErrorReason } from './distribution/registry-error.ts';
export type { RegistryOptions } from './distribution/registry-options.ts';
export { type DaemonlessRuntimeOptions, daemonlessOptionFields, daemonlessOptions } from './runtime-options.ts';
export { copyRoot } from './store/copy-root.ts';
export { type BuiltinImage, ImageStore, type ImageStoreOptions } from './store/image-store.ts';
