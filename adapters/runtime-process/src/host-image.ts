import type { BuiltinImage } from '@keelson/container-images';
import type { Image } from '@keelson/container-runtime';

/** The image that is always present: the file system of the machine. */
export const hostImage: Image = {
  id: 'host',
  repoTags: ['host:latest'],
  repoDigests: [],
  sizeBytes: 0,
  pinned: true,
  config: {},
};

export const builtinImages: readonly BuiltinImage[] = [{ image: hostImage, root: '/' }];
