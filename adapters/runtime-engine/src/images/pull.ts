import {
  type ImageAuth,
  type ImageReference,
  type PullRequest,
  parseImageReference,
  RuntimeError,
} from '@keelson/container-runtime';
import type { EngineHttp } from '../api/engine-http.ts';
import { lines } from '../api/lines.ts';

/** A line of the response stream of a pull. */
interface PullLine {
  readonly id?: string;
  readonly status?: string;
  readonly error?: string;
  readonly errorDetail?: { readonly message?: string } | null;
  readonly progressDetail?: { readonly current?: number; readonly total?: number } | null;
}

/**
 * Pulls an image, and resolves when the engine has stored it. True when the engine did not report the size of a layer:
 * Podman reports no progress of layers that take less than a second. @throws `ImageNotFound`, `PullFailed`,
 * `Unavailable`
 */
export async function pull(
  http: EngineHttp,
  reference: string,
  request: PullRequest,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const parsed = parseImageReference(reference);
  const stream = await http
    .open('POST', '/images/create', {
      query: query(parsed),
      headers: request.auth === undefined ? {} : { 'x-registry-auth': authHeader(request.auth, parsed) },
      signal,
    })
    .catch((error: unknown) => {
      throw error instanceof RuntimeError && error.code === 'Internal' ? pullError(error.message) : error;
    });
  const layers = new Map<string, { readonly current: number; readonly total: number | undefined }>();
  let failure: string | undefined;
  let unsized = false;
  try {
    // Errors are part of the stream, because the status was sent before the pull began.
    for await (const text of lines(stream)) {
      const line = parse(text);
      failure ??= line.errorDetail?.message ?? line.error;
      if (line.id === undefined) continue;
      const { current = layers.get(line.id)?.current ?? 0, total } = line.progressDetail ?? {};
      layers.set(line.id, { current, total: total ?? layers.get(line.id)?.total });
      if (line.status === 'Download complete' && current === 0) unsized = true;
      request.onProgress?.(sum([...layers.values()]));
    }
  } catch (error) {
    if (signal?.aborted) throw new RuntimeError('Aborted', 'the caller gave up', { cause: error });
    throw new RuntimeError('Unavailable', 'the connection to the container engine ended during a pull', {
      cause: error,
    });
  }
  if (!stream.complete)
    throw new RuntimeError('Unavailable', 'the connection to the container engine ended during a pull');
  if (failure !== undefined) throw pullError(failure);
  return unsized;
}

function sum(layers: readonly { readonly current: number; readonly total: number | undefined }[]) {
  const receivedBytes = layers.reduce((bytes, { current }) => bytes + current, 0);
  const complete = layers.every(({ total }) => total !== undefined && total > 0);
  return { receivedBytes, ...(complete && { totalBytes: layers.reduce((bytes, { total = 0 }) => bytes + total, 0) }) };
}

function query({ name, tag, digest }: ImageReference): Record<string, string> {
  return digest === undefined ? { fromImage: name, tag: tag ?? 'latest' } : { fromImage: `${name}@${digest}` };
}

/**
 * Error messages of registries and engines for an image that does not exist. 404 matches only as a status, because the
 * same digits occur in ports and digests.
 */
const notFoundTexts = [
  /manifest unknown|manifest for .* not found|repository .*(?:not found|does not exist)|name unknown|no such image/i,
  /\bstatus(?: ?code)?(?: from registry)?[:=]? 404\b|(?<![\w:.])404 \(?Not Found\b/i,
];

/** Converts an error message of a pull to `ImageNotFound` or `PullFailed`. */
export function pullError(message: string): RuntimeError {
  return new RuntimeError(notFoundTexts.some((text) => text.test(message)) ? 'ImageNotFound' : 'PullFailed', message);
}

function authHeader(auth: ImageAuth, { name }: ImageReference): string {
  const { registryToken, identityToken, username, password, serverAddress } = auth;
  const credentials =
    registryToken !== undefined
      ? { registrytoken: registryToken }
      : identityToken !== undefined
        ? { identitytoken: identityToken }
        : { username, password };
  const server = serverAddress === undefined || serverAddress === '' ? (name.split('/')[0] ?? '') : serverAddress;
  // Base64 for URLs with padding, which engines require.
  const text = Buffer.from(JSON.stringify({ ...credentials, serveraddress: server })).toString('base64');
  return text.replaceAll('+', '-').replaceAll('/', '_');
}

function parse(text: string): PullLine {
  try {
    const line: unknown = JSON.parse(text);
    return typeof line === 'object' && line !== null ? line : {};
  } catch {
    return {};
  }
}
