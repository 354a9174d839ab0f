import { RuntimeError } from '@keelson/container-runtime';
import type { EngineVersion } from './documents.ts';
import type { EngineHttp } from './engine-http.ts';

/** The versions of the API that this adapter speaks. */
const oldest = '1.40';
const newest = '1.43';

/** Podman understands the same requests and answers some of them in its own way. */
export type Flavour = 'docker' | 'podman';

export interface Negotiated {
  readonly flavour: Flavour;
  /** Of the engine. */
  readonly version: string;
  /** That both sides use. */
  readonly apiVersion: string;
}

/** Finds out who listens, and makes the client speak the newest version that both know. @throws `Unavailable`, `Unsupported` */
export async function negotiate(http: EngineHttp, signal?: AbortSignal): Promise<Negotiated> {
  const { body } = await http.json<EngineVersion | undefined>('GET', '/version', { signal });
  if (typeof body?.ApiVersion !== 'string')
    throw new RuntimeError('Unsupported', 'who listens at the socket is no container engine');
  const apiVersion = compareVersions(body.ApiVersion, newest) < 0 ? body.ApiVersion : newest;
  if (compareVersions(apiVersion, oldest) < 0 || compareVersions(apiVersion, body.MinAPIVersion ?? oldest) < 0) {
    const range = `${body.MinAPIVersion ?? '?'} to ${body.ApiVersion}`;
    throw new RuntimeError(
      'Unsupported',
      `the container engine speaks versions ${range} of its API, needed is ${oldest} to ${newest}`,
    );
  }
  http.version = apiVersion;
  const podman = body.Components?.some(({ Name }) => Name === 'Podman Engine') === true;
  return { flavour: podman ? 'podman' : 'docker', version: body.Version, apiVersion };
}

/** Negative when `a` is older. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((text) => text.split('.').map(Number));
  for (let position = 0; position < 3; position += 1) {
    const difference = (left?.[position] ?? 0) - (right?.[position] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
