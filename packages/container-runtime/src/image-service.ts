import type { CallOptions } from './call-options.ts';
import type { FilesystemUsage, Image, PullRequest } from './image.ts';

/** Store of images. References are `[registry/]name[:tag][@digest]`; a missing tag means `latest`. */
export interface ImageService {
  /** All images, or those that `reference` names. */
  listImages(reference?: string, options?: CallOptions): Promise<readonly Image[]>;
  /** The image of a reference or id; undefined when the store does not have it. */
  imageStatus(reference: string, options?: CallOptions): Promise<Image | undefined>;
  /**
   * Fetches the image again if the source has a newer one, and resolves with its id, which stays valid in
   * `ContainerConfig.image`.
   * @throws `ImageNotFound`, `PullFailed`, `InvalidArgument` for a malformed reference, `Unsupported` for a source
   *   this store cannot use.
   */
  pullImage(reference: string, request?: PullRequest, options?: CallOptions): Promise<string>;
  /** Removes the image with all its names; harmless when it is not there. Built-in images stay, without an error. */
  removeImage(reference: string, options?: CallOptions): Promise<void>;
  imageFsInfo(options?: CallOptions): Promise<readonly FilesystemUsage[]>;
}
