import { statfs } from 'node:fs/promises';
import {
  type FilesystemUsage,
  type Image,
  type ImageAuth,
  type ImageConfig,
  type ImageService,
  isRuntimeError,
  normalizeImageReference,
  type PullRequest,
  RuntimeError,
  type RuntimeErrorCode,
  toRuntimeError,
} from '@keelson/container-runtime';
import { Calls } from './api/calls.ts';
import { type CriConnection, isGrpcError, withCode } from './connection/cri-connection.ts';
import { fromFilesystem, fromImage, imageConfigOf } from './convert/from-cri.ts';
import { pullWithProgress } from './pull-with-progress.ts';

const maxCachedConfigs = 1024;

/** The images of a daemon. */
export class ImageCalls implements ImageService {
  readonly #connection: CriConnection;
  readonly #reportsProgress: boolean;
  /** Configurations by image id, because lists do not contain them; the configuration of an id never changes. */
  readonly #configs = new Map<string, ImageConfig>();

  /** `reportsProgress`: the daemon is a service of this package, which reports the progress of pulls. */
  constructor(connection: CriConnection, reportsProgress = false) {
    this.#connection = connection;
    this.#reportsProgress = reportsProgress;
  }

  async listImages(reference?: string, { signal }: { readonly signal?: AbortSignal } = {}): Promise<readonly Image[]> {
    if (reference !== undefined) {
      // The status is queried instead of a filtered list, because some daemons ignore the filter.
      const image = await this.#status(nameOf(reference), signal);
      return image === undefined ? [] : [image];
    }
    const { images = [] } = await this.#connection.call(Calls.listImages, {}, signal);
    const listed = await Promise.all(
      images.map(async (message) => {
        const cached = this.#configs.get(message.id ?? '');
        return cached === undefined ? this.#status(message.id ?? '', signal) : fromImage(message, cached);
      }),
    );
    return listed.filter((image) => image !== undefined);
  }

  async imageStatus(reference: string, { signal }: { readonly signal?: AbortSignal } = {}): Promise<Image | undefined> {
    return this.#status(nameOf(reference), signal);
  }

  async pullImage(
    reference: string,
    request: PullRequest = {},
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<string> {
    const image = normalizeImageReference(reference);
    const message = { image: { image }, auth: request.auth && toAuth(request.auth) };
    const { onProgress } = request;
    try {
      const { imageRef = '' } =
        this.#reportsProgress && onProgress !== undefined
          ? await pullWithProgress(this.#connection, message, onProgress, signal)
          : await this.#connection.call(Calls.pullImage, message, signal);
      // Some daemons return a reference with a digest instead of the id.
      return (await this.#status(imageRef, signal))?.id ?? imageRef;
    } catch (error) {
      throw pullError(toRuntimeError(error));
    }
  }

  async removeImage(reference: string, { signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
    // Removing the image by its id removes all its names.
    const image = await this.#status(nameOf(reference), signal);
    if (image === undefined) return;
    await this.#connection.call(Calls.removeImage, { image: { image: image.id } }, signal).catch((error: unknown) => {
      if (!isRuntimeError(error, 'NotFound')) throw error;
    });
    this.#configs.delete(image.id);
  }

  async imageFsInfo({ signal }: { readonly signal?: AbortSignal } = {}): Promise<readonly FilesystemUsage[]> {
    const { imageFilesystems = [] } = await this.#connection.call(Calls.imageFsInfo, {}, signal);
    return Promise.all(
      imageFilesystems.map(async (message) => {
        const path = message.fsId?.mountpoint ?? '';
        const size = await statfs(path).catch((cause: unknown) => {
          throw new RuntimeError('Unsupported', `the image file system does not exist on this machine: ${path}`, {
            cause,
          });
        });
        return fromFilesystem(message, {
          capacityBytes: size.blocks * size.bsize,
          availableBytes: size.bavail * size.bsize,
        });
      }),
    );
  }

  async #status(name: string, signal?: AbortSignal): Promise<Image | undefined> {
    const { image, info } = await this.#connection.call(
      Calls.imageStatus,
      { image: { image: name }, verbose: true },
      signal,
    );
    if (image?.id === undefined) return undefined;
    const config = imageConfigOf(info);
    this.#configs.set(image.id, config);
    const [oldest] = this.#configs.keys();
    if (this.#configs.size > maxCachedConfigs && oldest !== undefined) this.#configs.delete(oldest);
    return fromImage(image, config);
  }
}

/** Normalizes a reference. Ids and invalid references are returned unchanged: daemons may use other forms of ids. */
function nameOf(reference: string): string {
  if (/^(sha256:)?[0-9a-f]{64}$/.test(reference)) return reference;
  try {
    return normalizeImageReference(reference);
  } catch (error) {
    if (isRuntimeError(error, 'InvalidArgument')) return reference;
    throw error;
  }
}

function toAuth({ registryToken, identityToken, username, password, serverAddress }: ImageAuth) {
  if (registryToken !== undefined) return { registryToken, serverAddress };
  if (identityToken !== undefined) return { identityToken, serverAddress };
  return { username, password, serverAddress };
}

/** Codes of failures of the daemon or the request; all other codes concern the registry or the image. */
const notAboutTheImage = new Set<RuntimeErrorCode>(['Aborted', 'Unavailable', 'Unsupported', 'InvalidArgument']);

function pullError(error: RuntimeError): RuntimeError {
  if (error.code === 'NotFound' || error.code === 'ImageNotFound') return withCode(error, 'ImageNotFound');
  // A deadline that the daemon reports is its own limit for the registry.
  const unchanged =
    notAboutTheImage.has(error.code) || (error.code === 'DeadlineExceeded' && !isGrpcError(error.cause));
  return unchanged ? error : withCode(error, 'PullFailed');
}
