import { statfs } from 'node:fs/promises';
import {
  type CallOptions,
  type FilesystemUsage,
  type Image,
  type ImageService,
  isRuntimeError,
  normalizeImageReference,
  type PullRequest,
  RuntimeError,
} from '@keelson/container-runtime';
import type { Clock } from '@keelson/core/runtime';
import type { EngineInfo, ImageDetails, ImageEntry } from '../api/documents.ts';
import type { EngineHttp } from '../api/engine-http.ts';
import { pull } from './pull.ts';

const idPattern = /^(?:sha256:)?[0-9a-f]{12,64}$/;

/** The images of the engine, which all clients of the engine share. */
export class EngineImages implements ImageService {
  readonly #http: EngineHttp;
  readonly #clock: Clock;
  /** Image of sandboxes, which is reported as pinned. */
  readonly #infraImage: string;

  constructor(http: EngineHttp, clock: Clock, infraImage: string) {
    this.#http = http;
    this.#clock = clock;
    this.#infraImage = infraImage;
  }

  async listImages(reference?: string, { signal }: CallOptions = {}): Promise<readonly Image[]> {
    if (reference !== undefined) {
      const image = await this.imageStatus(reference, signal && { signal });
      return image === undefined ? [] : [image];
    }
    const { body } = await this.#http.json<readonly ImageEntry[] | undefined>('GET', '/images/json', { signal });
    const all = await Promise.all((body ?? []).map(({ Id }) => this.#inspect(Id, signal)));
    return all.filter((image) => image !== undefined);
  }

  async imageStatus(reference: string, { signal }: CallOptions = {}): Promise<Image | undefined> {
    return this.#inspect(idPattern.test(reference) ? reference : normalizeImageReference(reference), signal);
  }

  async pullImage(reference: string, request: PullRequest = {}, { signal }: CallOptions = {}): Promise<string> {
    const name = normalizeImageReference(reference);
    const unsized = await pull(this.#http, name, request, signal);
    const image = await this.#inspect(name, signal);
    if (image === undefined) throw new RuntimeError('PullFailed', `image "${name}" was pulled but does not exist`);
    // Reports the final size when the engine reported no sizes.
    if (unsized) request.onProgress?.({ receivedBytes: image.sizeBytes, totalBytes: image.sizeBytes });
    return image.id;
  }

  /**
   * Removes all names of the image; the engine removes the image with the last name. An image that a container uses is
   * rejected.
   */
  async removeImage(reference: string, { signal }: CallOptions = {}): Promise<void> {
    const image = await this.imageStatus(reference, signal && { signal });
    if (image === undefined) return;
    for (const name of [...image.repoTags, image.id]) {
      try {
        // The parameter `force` is not set, because Podman would then also remove the containers of the image.
        await this.#http.json('DELETE', `/images/${encodeURIComponent(name)}`, { signal });
      } catch (error) {
        if (!isRuntimeError(error, 'ImageNotFound') && !isRuntimeError(error, 'NotFound')) throw error;
      }
    }
  }

  async imageFsInfo({ signal }: CallOptions = {}): Promise<readonly FilesystemUsage[]> {
    const [info, images] = await Promise.all([
      this.#http.json<EngineInfo>('GET', '/info', { signal }),
      this.#http.json<readonly ImageEntry[] | undefined>('GET', '/images/json', { signal }),
    ]);
    const mountpoint = info.body.DockerRootDir;
    const { bsize, blocks, bavail } = await statfs(mountpoint);
    const usedBytes = (images.body ?? []).reduce((bytes, { Size }) => bytes + Size, 0);
    return [
      {
        mountpoint,
        timestamp: this.#clock.now(),
        usedBytes,
        capacityBytes: blocks * bsize,
        availableBytes: bavail * bsize,
      },
    ];
  }

  async #inspect(reference: string, signal: AbortSignal | undefined): Promise<Image | undefined> {
    try {
      const { body } = await this.#http.json<ImageDetails>('GET', `/images/${encodeURIComponent(reference)}/json`, {
        signal,
      });
      return imageOf(body, this.#infraImage);
    } catch (error) {
      if (isRuntimeError(error, 'ImageNotFound') || isRuntimeError(error, 'NotFound')) return undefined;
      throw error;
    }
  }
}

function imageOf({ Id, RepoTags, RepoDigests, Size, Config }: ImageDetails, infraImage: string): Image {
  const { User = '', Env, Entrypoint, Cmd, WorkingDir, StopSignal, Labels, Volumes } = Config ?? {};
  const user = User.split(':')[0] ?? '';
  const repoTags = RepoTags ?? [];
  return {
    ...{
      id: Id.startsWith('sha256:') ? Id : `sha256:${Id}`,
      repoTags,
      repoDigests: RepoDigests ?? [],
      sizeBytes: Size,
    },
    ...(/^\d+$/.test(user) && { uid: Number(user) }),
    ...(user !== '' && !/^\d+$/.test(user) && { username: user }),
    pinned: repoTags.includes(normalizeImageReference(infraImage)),
    config: {
      ...(User !== '' && { user: User }),
      ...(Env && { env: Env }),
      ...(Entrypoint && { entrypoint: Entrypoint }),
      ...(Cmd && { cmd: Cmd }),
      ...(WorkingDir !== undefined && WorkingDir !== '' && { workingDir: WorkingDir }),
      ...(StopSignal !== undefined && StopSignal !== '' && { stopSignal: StopSignal }),
      ...(Labels && { labels: Labels }),
      ...(Volumes && { volumes: Object.keys(Volumes) }),
    },
  };
}
