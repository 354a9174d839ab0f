import type { Image, ImageAuth } from '@keelson/container-runtime';
import type { ImageMessage, PullImageRequest } from '../../api/image.ts';
import type { Fields } from '../../wire/message.ts';

export function toImage(image: Image): Fields<typeof ImageMessage> {
  const { id, repoTags, repoDigests, sizeBytes, uid, username, pinned } = image;
  return {
    id,
    repoTags,
    repoDigests,
    size: BigInt(sizeBytes),
    uid: uid === undefined ? undefined : { value: uid },
    username,
    pinned,
  };
}

/** The configuration of an image as an OCI image specification, which is how containerd tells it. */
export function imageInfo({ config }: Image): Readonly<Record<string, string>> {
  const { user, env, entrypoint, cmd, workingDir, stopSignal, labels, volumes } = config;
  const imageSpec = {
    config: {
      User: user,
      Env: env,
      Entrypoint: entrypoint,
      Cmd: cmd,
      WorkingDir: workingDir,
      StopSignal: stopSignal,
      Labels: labels,
      Volumes: volumes && Object.fromEntries(volumes.map((path) => [path, {}])),
    },
  };
  return { info: JSON.stringify({ imageSpec }) };
}

type AuthMessage = NonNullable<Fields<typeof PullImageRequest>['auth']>;

/** Credentials of a pull; undefined when there are none in it. */
export function fromAuth(message: AuthMessage): ImageAuth | undefined {
  const { registryToken, identityToken, serverAddress, auth } = message;
  const [, user, secret] = auth ? (/^([^:]*):(.*)$/s.exec(Buffer.from(auth, 'base64').toString('utf8')) ?? []) : [];
  const { username = user, password = secret } = message;
  const credentials = {
    ...(registryToken && { registryToken }),
    ...(identityToken && { identityToken }),
    ...(username && { username }),
    ...(password && { password }),
  };
  if (Object.keys(credentials).length === 0) return undefined;
  return { ...credentials, ...(serverAddress && { serverAddress }) };
}
