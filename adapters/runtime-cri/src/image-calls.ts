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
import { pullTold } from './pull-told.ts';

const configsKept = 1024;

/** The images of a daemon. */
export class ImageCalls implements ImageService {
  readonly #connection: CriConnection;
  readonly #tellsProgress: boolean;
  /** By id, under which a configuration never changes; lists do not carry it. */
  readonly #configs = new Map<string, ImageConfig>();

  /** `tellsProgress`: the daemon is a service of this package. */
  constructor(connection: CriConnection, tellsProgress = false) {
    this.#connection = connection;
    this.#tellsProgress = tellsProgress;
  }

  async listImages(reference?: string, { signal }: { readonly signal?: AbortSignal } = {}): Promise<readonly Image[]> {
    if (reference !== undefined) {
      // Not all daemons look at the filter of a list.
      const image = await this.#status(nameOf(reference), signal);
      return image === undefined ? [] : [image];
    }
    const { images = [] } = await this.#connection.call(Calls.listImages, {}, signal);
    const listed = await Promise.all(
      images.map(async (message) => {
        const known = this.#configs.get(message.id ?? '');
        return known === undefined ? this.#status(message.id ?? '', signal) : fromImage(message, known);
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
        this.#tellsProgress && onProgress !== undefined
          ? await pullTold(this.#connection, message, onProgress, signal)
          : await this.#connection.call(Calls.pullImage, message, signal);
      // Some daemons answer with a name by digest.
      return (await this.#status(imageRef, signal))?.id ?? imageRef;
    } catch (error) {
      throw whyNotPulled(toRuntimeError(error));
    }
  }

  async removeImage(reference: string, { signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
    // By its id it goes with all its names.
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
          throw new RuntimeError('Unsupported', `the file system of the images is not on this machine: ${path}`, {
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
    if (this.#configs.size > configsKept && oldest !== undefined) this.#configs.delete(oldest);
    return fromImage(image, config);
  }
}

/** A reference with its tag; an id stays, and so does what is no reference: a daemon may have ids of another form. */
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

/** Codes that are about the daemon or the request; every other one is about the registry or the image. */
const notOfTheImage = new Set<RuntimeErrorCode>(['Aborted', 'Unavailable', 'Unsupported', 'InvalidArgument']);

function whyNotPulled(error: RuntimeError): RuntimeError {
  if (error.code === 'NotFound' || error.code === 'ImageNotFound') return withCode(error, 'ImageNotFound');
  // A deadline of the daemon's own is one it set for the registry.
  const ours = notOfTheImage.has(error.code) || (error.code === 'DeadlineExceeded' && !isGrpcError(error.cause));
  return ours ? error : withCode(error, 'PullFailed');
}
