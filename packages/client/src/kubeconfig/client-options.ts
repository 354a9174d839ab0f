import { readFile } from 'node:fs/promises';
import type { Clock } from '@keelson/core/runtime';
import type { HttpClientOptions } from '../http/http-client-options.ts';
import type { Kubeconfig, KubeconfigCluster, KubeconfigUser } from './kubeconfig.ts';
import { KubeconfigError } from './kubeconfig-error.ts';
import type { FileOrData } from './kubeconfig-reader.ts';
import { tokenFromFile } from './token-file.ts';

/** The client options defined by a kubeconfig, and the default namespace of its context. */
export interface KubeconfigAccess {
  readonly options: HttpClientOptions;
  readonly context: string;
  /** The default namespace of the context; undefined when the context contains none. */
  readonly namespace?: string;
}

async function contentOf(what: string, { path, data }: FileOrData): Promise<Buffer | undefined> {
  if (data !== undefined) return Buffer.from(data, 'base64');
  if (path === undefined) return undefined;
  try {
    return await readFile(path);
  } catch (cause) {
    throw new KubeconfigError(`${what}: cannot read ${path}`, cause);
  }
}

function named<T>(entries: ReadonlyMap<string, T>, what: string, name: string): T {
  const entry = entries.get(name);
  if (entry !== undefined) return entry;
  const names = [...entries.keys()].map((key) => JSON.stringify(key)).join(', ');
  throw new KubeconfigError(`there is no ${what} ${JSON.stringify(name)}; known: ${names === '' ? 'none' : names}`);
}

const refusals: Readonly<Record<string, string>> = {
  exec: 'credential plugins (exec) are not run; obtain a token and put it in token or tokenFile',
  'auth-provider': 'auth providers are not supported; obtain a token and put it in token or tokenFile',
  username: 'user names and passwords are not supported; use a token or a client certificate',
  password: 'user names and passwords are not supported; use a token or a client certificate',
  'proxy-url': 'proxies are not supported',
};

function refuse(what: string, unsupported: readonly string[]): void {
  const [first] = unsupported;
  if (first !== undefined) throw new KubeconfigError(`${what}: ${refusals[first] ?? `${first} is not supported`}`);
}

async function clusterOptions(name: string, cluster: KubeconfigCluster): Promise<HttpClientOptions> {
  const what = `cluster ${JSON.stringify(name)}`;
  refuse(what, cluster.unsupported);
  if (cluster.server === '') throw new KubeconfigError(`${what}: server is missing`);
  const ca = await contentOf(what, cluster.certificateAuthority);
  if (ca !== undefined && cluster.insecureSkipTlsVerify) {
    throw new KubeconfigError(`${what}: insecure-skip-tls-verify and certificate-authority are mutually exclusive`);
  }
  return {
    server: cluster.server,
    ...(ca === undefined ? {} : { ca }),
    ...(cluster.insecureSkipTlsVerify ? { insecureSkipTlsVerify: true } : {}),
    ...(cluster.tlsServerName === undefined ? {} : { tlsServerName: cluster.tlsServerName }),
    ...(cluster.disableCompression ? { compression: false } : {}),
  };
}

async function userOptions(
  name: string,
  user: KubeconfigUser,
  clock: Clock | undefined,
): Promise<Partial<HttpClientOptions>> {
  const what = `user ${JSON.stringify(name)}`;
  refuse(what, user.unsupported);
  const clientCertificate = await contentOf(what, user.clientCertificate);
  const clientKey = await contentOf(what, user.clientKey);
  if ((clientCertificate === undefined) !== (clientKey === undefined)) {
    throw new KubeconfigError(`${what}: client-certificate and client-key must be specified together`);
  }
  return {
    ...(clientCertificate === undefined || clientKey === undefined ? {} : { clientCertificate, clientKey }),
    ...(user.token === undefined ? {} : { token: user.token }),
    ...(user.tokenFile === undefined ? {} : { tokenProvider: tokenFromFile(user.tokenFile, clock) }),
    ...(user.impersonate === undefined ? {} : { impersonate: user.impersonate }),
  };
}

/**
 * Derives the options of `createHttpClient` from a context of a kubeconfig. Certificates and keys are read immediately,
 * token files repeatedly.
 *
 * @param contextName default: the current context
 * @throws KubeconfigError for missing names, unreadable files and unsupported settings
 */
export async function kubeconfigAccess(
  config: Kubeconfig,
  { context: contextName = config.currentContext, clock }: { readonly context?: string; readonly clock?: Clock } = {},
): Promise<KubeconfigAccess> {
  if (contextName === '') throw new KubeconfigError('no context is selected: current-context is not set');
  const context = named(config.contexts, 'context', contextName);
  const cluster = await clusterOptions(context.cluster, named(config.clusters, 'cluster', context.cluster));
  const user =
    context.user === '' ? {} : await userOptions(context.user, named(config.users, 'user', context.user), clock);
  return {
    options: { ...cluster, ...user, ...(clock === undefined ? {} : { clock }) },
    context: contextName,
    ...(context.namespace === undefined ? {} : { namespace: context.namespace }),
  };
}
