import { RuntimeError } from '@keelson/container-runtime';
import type { EngineHttp } from './engine-http.ts';

/** The versions of the API that this adapter supports. */
const oldest = '1.40';
const newest = '1.51';

/** Podman accepts the same requests as Docker, but some of its responses differ. */
export type Flavour = 'docker' | 'podman';

export interface Negotiated {
  readonly flavour: Flavour;
  /** Version of the engine. */
  readonly version: string;
  /** Version of the API that both sides use. */
  readonly apiVersion: string;
}

/**
 * Detects the engine, and sets the client to the newest API version that both sides support.
 * @throws `Unavailable`, `Unsupported`
 */
export async function negotiate(http: EngineHttp, signal?: AbortSignal): Promise<Negotiated> {
  // GET /version is not used, because Podman starts several programs to respond.
  const answer = await http.open('GET', '/_ping', { signal });
  answer.resume();
  const { 'api-version': offered, 'libpod-api-version': podman, server = '' } = answer.headers;
  if (typeof offered !== 'string')
    throw new RuntimeError('Unsupported', 'the server at the socket is not a container engine');
  const apiVersion = compareVersions(offered, newest) < 0 ? offered : newest;
  if (compareVersions(apiVersion, oldest) < 0) {
    const needed = `but ${oldest} or newer is required`;
    throw new RuntimeError('Unsupported', `the container engine supports API version ${offered}, ${needed}`);
  }
  http.version = apiVersion;
  if (typeof podman === 'string') return { flavour: 'podman', version: podman, apiVersion };
  return { flavour: 'docker', version: /^Docker\/(\S+)/.exec(String(server))?.[1] ?? 'unknown', apiVersion };
}

/** Negative when `a` is older, positive when it is newer, 0 when they are equal. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((text) => text.split('.').map(Number));
  for (let position = 0; position < 3; position += 1) {
    const difference = (left?.[position] ?? 0) - (right?.[position] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
