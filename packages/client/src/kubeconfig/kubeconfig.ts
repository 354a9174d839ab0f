import { parseYaml } from '@keelson/core/internal';
import { KubeconfigError } from './kubeconfig-error.ts';
import { type Fields, type FileOrData, KubeconfigReader } from './kubeconfig-reader.ts';

/** A server in a kubeconfig, and how its certificate is verified. */
export interface KubeconfigCluster {
  readonly server: string;
  readonly certificateAuthority: FileOrData;
  readonly insecureSkipTlsVerify: boolean;
  readonly tlsServerName?: string;
  readonly disableCompression: boolean;
  /** Settings that this client does not support, by their names in the file. */
  readonly unsupported: readonly string[];
}

/** Credentials in a kubeconfig. */
export interface KubeconfigUser {
  readonly clientCertificate: FileOrData;
  readonly clientKey: FileOrData;
  readonly token?: string;
  readonly tokenFile?: string;
  readonly impersonate?: {
    readonly user: string;
    readonly uid?: string;
    readonly groups: readonly string[];
    readonly extra: Readonly<Record<string, readonly string[]>>;
  };
  readonly unsupported: readonly string[];
}

/** A combination of cluster, user and default namespace in a kubeconfig. */
export interface KubeconfigContext {
  readonly cluster: string;
  readonly user: string;
  readonly namespace?: string;
}

/** Clusters, users and contexts. File paths are absolute. */
export interface Kubeconfig {
  readonly currentContext: string;
  readonly clusters: ReadonlyMap<string, KubeconfigCluster>;
  readonly users: ReadonlyMap<string, KubeconfigUser>;
  readonly contexts: ReadonlyMap<string, KubeconfigContext>;
}

function present(fields: Fields, names: readonly string[]): string[] {
  return names.filter(
    (name) => Object.hasOwn(fields, name) && fields[name] !== undefined && fields[name] !== null && fields[name] !== '',
  );
}

function optionalText<K extends string>(key: K, value: string | undefined): { [P in K]?: string } {
  return (value === undefined ? {} : { [key]: value }) as { [P in K]?: string };
}

function readCluster(reader: KubeconfigReader, fields: Fields, where: string): KubeconfigCluster {
  return {
    server: reader.text(fields, 'server', where) ?? '',
    certificateAuthority: reader.file(fields, 'certificate-authority', where),
    insecureSkipTlsVerify: reader.flag(fields, 'insecure-skip-tls-verify', where),
    ...optionalText('tlsServerName', reader.text(fields, 'tls-server-name', where)),
    disableCompression: reader.flag(fields, 'disable-compression', where),
    unsupported: present(fields, ['proxy-url']),
  };
}

function readUser(reader: KubeconfigReader, fields: Fields, where: string): KubeconfigUser {
  const user = reader.text(fields, 'as', where);
  const extra = Object.entries(reader.fields(fields['as-user-extra'], `${where}.as-user-extra`));
  return {
    clientCertificate: reader.file(fields, 'client-certificate', where),
    clientKey: reader.file(fields, 'client-key', where),
    ...optionalText('token', reader.text(fields, 'token', where)),
    ...optionalText('tokenFile', reader.path(fields, 'tokenFile', where)),
    ...(user === undefined
      ? {}
      : {
          impersonate: {
            user,
            ...optionalText('uid', reader.text(fields, 'as-uid', where)),
            groups: reader.texts(fields['as-groups'], `${where}.as-groups`),
            extra: Object.fromEntries(
              extra.map(([key, values]) => [key, reader.texts(values, `${where}.as-user-extra.${key}`)]),
            ),
          },
        }),
    unsupported: present(fields, ['exec', 'auth-provider', 'username', 'password']),
  };
}

function readContext(reader: KubeconfigReader, fields: Fields, where: string): KubeconfigContext {
  return {
    cluster: reader.text(fields, 'cluster', where) ?? '',
    user: reader.text(fields, 'user', where) ?? '',
    ...optionalText('namespace', reader.text(fields, 'namespace', where)),
  };
}

/**
 * Parses the content of one kubeconfig file. Credential plugins and other unsupported settings are rejected only by
 * `kubeconfigAccess`, for the user that is selected.
 *
 * @param source name of the file in error messages
 * @param resolvePath makes paths in the file absolute; they are relative to the directory of the file
 * @throws KubeconfigError
 */
export function parseKubeconfig(content: Buffer, source: string, resolvePath: (path: string) => string): Kubeconfig {
  let value: unknown;
  try {
    value = content.toString('utf8').trim() === '' ? {} : parseYaml(content).value;
  } catch (cause) {
    throw new KubeconfigError(`${source}: neither YAML nor JSON`, cause);
  }
  const reader = new KubeconfigReader(source, resolvePath);
  const document = reader.fields(value, 'document');
  return {
    currentContext: reader.text(document, 'current-context', 'document') ?? '',
    clusters: reader.named(document, 'clusters', 'cluster', (fields, where) => readCluster(reader, fields, where)),
    users: reader.named(document, 'users', 'user', (fields, where) => readUser(reader, fields, where)),
    contexts: reader.named(document, 'contexts', 'context', (fields, where) => readContext(reader, fields, where)),
  };
}

/** Merges several kubeconfigs. Of several entries with the same name, the first is used. */
export function mergeKubeconfigs(configs: readonly Kubeconfig[]): Kubeconfig {
  const merged = <T>(pick: (config: Kubeconfig) => ReadonlyMap<string, T>): Map<string, T> =>
    new Map(configs.toReversed().flatMap((config) => [...pick(config)]));
  return {
    currentContext: configs.find(({ currentContext }) => currentContext !== '')?.currentContext ?? '',
    clusters: merged(({ clusters }) => clusters),
    users: merged(({ users }) => users),
    contexts: merged(({ contexts }) => contexts),
  };
}
