import { parseImageReference } from '@keelson/container-runtime';
import type { RegistryOptions } from './registry-options.ts';

/** A server that may have a repository. */
export interface Endpoint {
  /** URL with scheme and without trailing slash. */
  readonly base: string;
  /** True for the registry of the reference, false for mirrors. Credentials are not sent to mirrors. */
  readonly trusted: boolean;
}

/** The parts of an image reference that a registry uses. */
export interface Repository {
  /** Host of the registry in the reference. */
  readonly host: string;
  /** Path of the repository in the registry. */
  readonly path: string;
  /** Tag or digest of the image. */
  readonly version: string;
  /** Servers to query, in the order of the list. */
  readonly endpoints: readonly Endpoint[];
}

const publicHost = 'docker.io';
const publicHosts = new Set([publicHost, 'index.docker.io', 'registry-1.docker.io']);

/** Parses a reference. Without a registry it refers to docker.io, where a name of one part is below `library/`. */
export function repositoryOf(reference: string, options: RegistryOptions): Repository {
  const { name, tag, digest } = parseImageReference(reference);
  const [first = '', ...rest] = name.split('/');
  const named = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  const host = !named || publicHosts.has(first) ? publicHost : first;
  const given = named ? rest.join('/') : name;
  const path = host === publicHost && !given.includes('/') ? `library/${given}` : given;
  const scheme = isLoopback(host) || (options.insecureHosts ?? []).includes(host) ? 'http' : 'https';
  const mirrors = (options.mirrors?.[host] ?? []).map((base) => ({ base: base.replace(/\/+$/, ''), trusted: false }));
  const own = { base: `${scheme}://${host === publicHost ? 'registry-1.docker.io' : host}`, trusted: true };
  return { host, path, version: digest ?? tag ?? 'latest', endpoints: [...mirrors, own] };
}

function isLoopback(host: string): boolean {
  const name = host.replace(/:\d+$/, '');
  return name === 'localhost' || name === '[::1]' || /^127(\.\d{1,3}){3}$/.test(name);
}
