export { type BuiltinImage, ImageStore, type ImageStoreOptions } from './store/image-store.ts';
