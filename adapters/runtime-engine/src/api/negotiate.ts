import { RuntimeError } from '@keelson/container-runtime';
import type { EngineHttp } from './engine-http.ts';

/** The versions of the API that this adapter speaks. */
const oldest = '1.40';
const newest = '1.51';

/** Podman understands the same requests and answers some of them in its own way. */
export type Flavour = 'docker' | 'podman';

export interface Negotiated {
  readonly flavour: Flavour;
  /** Of the engine. */
  readonly version: string;
  /** That both sides use. */
  readonly apiVersion: string;
}

/**
 * Finds out who listens, and makes the client speak the newest version that both know.
 * @throws `Unavailable`, `Unsupported`
 */
export async function negotiate(http: EngineHttp, signal?: AbortSignal): Promise<Negotiated> {
  // Not /version, for which Podman runs half a dozen programs.
  const answer = await http.open('GET', '/_ping', { signal });
  answer.resume();
  const { 'api-version': offered, 'libpod-api-version': podman, server = '' } = answer.headers;
  if (typeof offered !== 'string')
    throw new RuntimeError('Unsupported', 'who listens at the socket is no container engine');
  const apiVersion = compareVersions(offered, newest) < 0 ? offered : newest;
  if (compareVersions(apiVersion, oldest) < 0) {
    const needed = `needed is ${oldest} or newer`;
    throw new RuntimeError('Unsupported', `the container engine speaks version ${offered} of its API, ${needed}`);
  }
  http.version = apiVersion;
  if (typeof podman === 'string') return { flavour: 'podman', version: podman, apiVersion };
  return { flavour: 'docker', version: /^Docker\/(\S+)/.exec(String(server))?.[1] ?? 'unknown', apiVersion };
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
