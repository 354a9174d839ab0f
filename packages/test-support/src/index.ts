export { Containerd, type ContainerdOptions, lackingForContainerd } from './containerd.ts';
export { findProgram, installPrograms } from './debian-packages.ts';
export { freePort, freePorts } from './free-ports.ts';
export { buildRoot, dockerArchive, ociLayout, tarOf } from './image-builder.ts';
export { lackingForPodman, Podman } from './podman.ts';
export { type AddedImage, LoopbackRegistry, type RegistryOptions } from './registry.ts';
export type { RegistryAuth } from './registry-access.ts';
export type { RegistryBehaviour, RegistryRequest } from './registry-behaviour.ts';
export type { ImageFormat, RegistryImage, RegistryLayer } from './registry-images.ts';
