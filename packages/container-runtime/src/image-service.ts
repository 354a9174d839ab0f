import type { CallOptions } from './call-options.ts';
import type { FilesystemUsage, Image, PullRequest } from './image.ts';

/** Store of images. References are `[registry/]name[:tag][@digest]`; a missing tag means `latest`. */
export interface ImageService {
  /** Lists all images, or only those with this reference. */
  listImages(reference?: string, options?: CallOptions): Promise<readonly Image[]>;
  /** Returns the image with this reference or id; undefined when the store does not have it. */
  imageStatus(reference: string, options?: CallOptions): Promise<Image | undefined>;
  /**
   * Pulls an image unless the store already has the version that the source has. Resolves with the id of the image,
   * which is valid as `ContainerConfig.image`.
   * @throws `ImageNotFound`, `PullFailed`, `InvalidArgument` for a malformed reference, `Unsupported` for a source
   *   that this store cannot use.
   */
  pullImage(reference: string, request?: PullRequest, options?: CallOptions): Promise<string>;
  /** Removes an image with all its names. Does nothing for an image that does not exist or is built-in. */
  removeImage(reference: string, options?: CallOptions): Promise<void>;
  imageFsInfo(options?: CallOptions): Promise<readonly FilesystemUsage[]>;
}
