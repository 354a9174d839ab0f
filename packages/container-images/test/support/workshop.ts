import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { systemClock } from '@keelson/core/runtime';
import { LoopbackRegistry, type RegistryBehaviour, type RegistryLayer } from '@keelson/test-support';
import type { ExecutionContext } from 'ava';
import { ImageStore, type ImageStoreOptions } from '../../src/index.ts';
import { type TarEntry, tarBytes } from './tar-bytes.ts';

/** A folder that is removed after the test. */
export async function scratchFolder(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp('/tmp/keelson-images-');
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A store in a folder of its own, or in the one given. */
export async function openStore(t: ExecutionContext, options: Partial<ImageStoreOptions> = {}): Promise<ImageStore> {
  const store = new ImageStore({ folder: await scratchFolder(t), clock: systemClock, registries: {}, ...options });
  await store.load();
  return store;
}

export async function openRegistry(t: ExecutionContext, behaviour: RegistryBehaviour = {}): Promise<LoopbackRegistry> {
  const registry = await LoopbackRegistry.open(behaviour);
  t.teardown(() => registry[Symbol.asyncDispose]());
  return registry;
}

/** A layer that is served as it is. */
export function layerOf(entries: readonly TarEntry[] | Buffer): RegistryLayer {
  const bytes = entries instanceof Buffer ? entries : tarBytes(entries as readonly TarEntry[]);
  const diffId = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
  return { mediaType: 'application/vnd.oci.image.layer.v1.tar', bytes, diffId };
}

/** One file of as many bytes that no compression makes smaller; different for every name. */
export function fileOf(name: string, length: number): TarEntry {
  const hash = createHash('shake256', { outputLength: length });
  return { name, content: hash.update(name).digest() };
}

/** Pulls an image of these layers and returns its root. */
export async function rootOf(t: ExecutionContext, ...layers: (readonly TarEntry[] | Buffer)[]): Promise<string> {
  const registry = await openRegistry(t);
  registry.add('app:1', { layers: layers.map(layerOf) });
  const store = await openStore(t);
  await store.pullImage(`${registry.host}/app:1`);
  const image = store.find(`${registry.host}/app:1`);
  if (image === undefined) throw new Error('the image is not there');
  return store.rootOf(image);
}
