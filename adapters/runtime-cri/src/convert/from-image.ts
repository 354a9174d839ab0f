import type { Image, ImageConfig } from '@keelson/container-runtime';
import type { ImageMessage } from '../api/image.ts';
import type { Fields } from '../wire/message.ts';
import { isRecord, recordOf } from './is-record.ts';
import type { TextMap } from './notes.ts';

export function fromImage(message: Fields<typeof ImageMessage>, config: ImageConfig): Image {
  return {
    id: message.id ?? '',
    repoTags: message.repoTags ?? [],
    repoDigests: message.repoDigests ?? [],
    sizeBytes: Number(message.size ?? 0n),
    ...(message.uid && { uid: message.uid.value ?? 0 }),
    ...(message.username && { username: message.username }),
    pinned: message.pinned ?? false,
    config,
  };
}

/** The configuration of an image out of a verbose status: an OCI image specification. */
export function imageConfigOf(info: TextMap | undefined): ImageConfig {
  const { imageSpec } = recordOf(info?.['info']);
  const config = isRecord(imageSpec) && isRecord(imageSpec['config']) ? imageSpec['config'] : {};
  const { User, Env, Entrypoint, Cmd, WorkingDir, StopSignal, Labels, Volumes } = config;
  return {
    ...(isText(User) && { user: User }),
    ...(isTexts(Env) && { env: Env }),
    ...(isTexts(Entrypoint) && { entrypoint: Entrypoint }),
    ...(isTexts(Cmd) && { cmd: Cmd }),
    ...(isText(WorkingDir) && { workingDir: WorkingDir }),
    ...(isText(StopSignal) && { stopSignal: StopSignal }),
    ...(isRecord(Labels) && {
      labels: Object.fromEntries(Object.entries(Labels).map(([key, value]) => [key, String(value)])),
    }),
    ...(isRecord(Volumes) && { volumes: Object.keys(Volumes) }),
  };
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');
