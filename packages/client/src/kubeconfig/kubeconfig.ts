import { parseYaml } from '@keelson/core';

/** A file that may be given by its path or, base64-coded, by its content. */
interface FileOrData {
  readonly path?: string;
  readonly data?: string;
}

export interface KubeconfigCluster {
  readonly server: string;
  readonly certificateAuthority: FileOrData;
  readonly insecureSkipTlsVerify: boolean;
  readonly tlsServerName?: string;
  readonly disableCompression: boolean;
  /** Settings that this client does not have, by their names in the file. */
  readonly unsupported: readonly string[];
}

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

export interface KubeconfigContext {
  readonly cluster: string;
  readonly user: string;
  readonly namespace?: string;
}

/** Servers, users and the contexts that join them. File paths are absolute. */
export interface Kubeconfig {
  readonly currentContext: string;
  readonly clusters: ReadonlyMap<string, KubeconfigCluster>;
  readonly users: ReadonlyMap<string, KubeconfigUser>;
  readonly contexts: ReadonlyMap<string, KubeconfigContext>;
}

/** A client config that cannot be used, and what is wrong with it. Messages never hold secrets. */
export class KubeconfigError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'KubeconfigError';
  }
}

type Fields = Readonly<Record<string, unknown>>;

/** Reads one file's content, telling where a fault is. */
class Reader {
  readonly #source: string;
  readonly #resolvePath: (path: string) => string;

  constructor(source: string, resolvePath: (path: string) => string) {
    this.#source = source;
    this.#resolvePath = resolvePath;
  }

  fail(where: string, expected: string): never {
    throw new KubeconfigError(`${this.#source}: ${where}: expected ${expected}`);
  }

  fields(value: unknown, where: string): Fields {
    if (value === undefined || value === null) return {};
    return typeof value === 'object' && !Array.isArray(value) ? (value as Fields) : this.fail(where, 'a map');
  }

  text(fields: Fields, name: string, where: string): string | undefined {
    const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (value === undefined || value === null || value === '') return undefined;
    return typeof value === 'string' ? value : this.fail(`${where}.${name}`, 'text');
  }

  flag(fields: Fields, name: string, where: string): boolean {
    const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (value === undefined || value === null) return false;
    return typeof value === 'boolean' ? value : this.fail(`${where}.${name}`, 'true or false');
  }

  texts(value: unknown, where: string): string[] {
    if (value === undefined || value === null) return [];
    if (!Array.isArray(value) || !value.every((item) => typeof item === 'string')) return this.fail(where, 'a list of texts');
    return value;
  }

  file(fields: Fields, name: string, where: string): FileOrData {
    const path = this.text(fields, name, where);
    const data = this.text(fields, `${name}-data`, where);
    return { ...(path === undefined ? {} : { path: this.#resolvePath(path) }), ...(data === undefined ? {} : { data }) };
  }

  path(fields: Fields, name: string, where: string): string | undefined {
    const path = this.text(fields, name, where);
    return path === undefined ? undefined : this.#resolvePath(path);
  }

  /** A list of `{ name, [key]: ... }`; of two entries with one name the first counts. */
  named<T>(document: Fields, list: string, key: string, read: (fields: Fields, where: string) => T): Map<string, T> {
    const entries = new Map<string, T>();
    const items = document[list] ?? [];
    if (!Array.isArray(items)) this.fail(list, 'a list');
    for (const [at, item] of (items as unknown[]).entries()) {
      const where = `${list}[${at}]`;
      const fields = this.fields(item, where);
      const name = this.text(fields, 'name', where) ?? this.fail(`${where}.name`, 'text');
      if (!entries.has(name)) entries.set(name, read(this.fields(fields[key], `${where}.${key}`), `${where}.${key}`));
    }
    return entries;
  }
}

function present(fields: Fields, names: readonly string[]): string[] {
  return names.filter(
    (name) => Object.hasOwn(fields, name) && fields[name] !== undefined && fields[name] !== null && fields[name] !== '',
  );
}

function optionalText<K extends string>(key: K, value: string | undefined): { [P in K]?: string } {
  return (value === undefined ? {} : { [key]: value }) as { [P in K]?: string };
}

function readCluster(reader: Reader, fields: Fields, where: string): KubeconfigCluster {
  return {
    server: reader.text(fields, 'server', where) ?? '',
    certificateAuthority: reader.file(fields, 'certificate-authority', where),
    insecureSkipTlsVerify: reader.flag(fields, 'insecure-skip-tls-verify', where),
    ...optionalText('tlsServerName', reader.text(fields, 'tls-server-name', where)),
    disableCompression: reader.flag(fields, 'disable-compression', where),
    unsupported: present(fields, ['proxy-url']),
  };
}

function readUser(reader: Reader, fields: Fields, where: string): KubeconfigUser {
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
            extra: Object.fromEntries(extra.map(([key, values]) => [key, reader.texts(values, `${where}.as-user-extra.${key}`)])),
          },
        }),
    unsupported: present(fields, ['exec', 'auth-provider', 'username', 'password']),
  };
}

function readContext(reader: Reader, fields: Fields, where: string): KubeconfigContext {
  return {
    cluster: reader.text(fields, 'cluster', where) ?? '',
    user: reader.text(fields, 'user', where) ?? '',
    ...optionalText('namespace', reader.text(fields, 'namespace', where)),
  };
}

/**
 * Reads the content of one client config file. Nothing is opened or connected; plugins that the file names are refused only when
 * their user is used.
 *
 * @param source what messages call the file
 * @param resolvePath makes paths in the file absolute; they count from the file's folder
 * @throws KubeconfigError
 */
export function parseKubeconfig(content: Buffer, source: string, resolvePath: (path: string) => string): Kubeconfig {
  let value: unknown;
  try {
    value = content.toString('utf8').trim() === '' ? {} : parseYaml(content).value;
  } catch (cause) {
    throw new KubeconfigError(`${source}: neither YAML nor JSON`, cause);
  }
  const reader = new Reader(source, resolvePath);
  const document = reader.fields(value, 'document');
  return {
    currentContext: reader.text(document, 'current-context', 'document') ?? '',
    clusters: reader.named(document, 'clusters', 'cluster', (fields, where) => readCluster(reader, fields, where)),
    users: reader.named(document, 'users', 'user', (fields, where) => readUser(reader, fields, where)),
    contexts: reader.named(document, 'contexts', 'context', (fields, where) => readContext(reader, fields, where)),
  };
}

/** One config of several: the first file that names something decides. */
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
