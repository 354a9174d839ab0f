import { parseImageReference } from '@keelson/container-runtime';
import type { RegistryOptions } from './registry-options.ts';

/** A place where a repository may be. */
export interface Endpoint {
  /** With scheme, without a slash at the end. */
  readonly base: string;
  /** False for mirrors: credentials are for the registry that the reference names. */
  readonly trusted: boolean;
}

/** What a reference means to a registry. */
export interface Repository {
  /** The registry as references name it. */
  readonly host: string;
  /** Path within the registry. */
  readonly path: string;
  /** Tag or digest. */
  readonly version: string;
  /** Where it is asked for, in this order. */
  readonly endpoints: readonly Endpoint[];
}

const publicHost = 'docker.io';
const publicHosts = new Set([publicHost, 'index.docker.io', 'registry-1.docker.io']);

/** References without a registry are those of the public one, where a name of one part is below `library/`. */
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
