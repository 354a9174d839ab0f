export { findProgram, installPrograms } from './debian-packages.ts';
export { buildRoot, dockerArchive, ociLayout, tarOf } from './image-builder.ts';
