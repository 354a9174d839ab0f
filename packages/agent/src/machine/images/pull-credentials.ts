import { readFile } from 'node:fs/promises';
import type { ImageAuth } from '@keelson/container-runtime';
import { isJsonObject, parseJsonObject, parseYaml } from '@keelson/core/internal';
import type { Logger } from '@keelson/core/runtime';
import type { Secret } from '@keelson/kinds';

/** The registry, or path in a registry, of a credential: `https://*.example:5000/team`. */
interface RegistryPattern {
  readonly host: string;
  readonly port: string;
  readonly path: string;
}

const publicNames = new Set(['docker.io', 'index.docker.io', 'registry-1.docker.io']);

/**
 * The length of the match of a pattern with the repository of a reference, in characters; undefined when it does not
 * match. Hosts match label by label, where `*` matches any text within a label; ports must be equal; paths match as
 * prefixes.
 */
export function registryMatch(pattern: string, reference: string): number | undefined {
  const wanted = parsePattern(pattern);
  const actual = parsePattern(repositoryOf(reference));
  const labels = actual.host.split('.');
  const globs = wanted.host.split('.');
  const sameHost =
    globs.length === labels.length && globs.every((glob, position) => matchesGlob(glob, labels[position] ?? ''));
  if (!sameHost || wanted.port !== actual.port) return undefined;
  if (wanted.path !== '' && actual.path !== wanted.path && !actual.path.startsWith(`${wanted.path}/`)) return undefined;
  return pattern.length;
}

/**
 * Registry and path of a reference. The first part is a registry if it has the form of a host; otherwise the registry
 * is docker.io.
 */
function repositoryOf(reference: string): string {
  const name = reference.replace(/@.*$/, '').replace(/:[^:/]*$/, '');
  const [first = '', ...rest] = name.split('/');
  const named = rest.length > 0 && (first.includes('.') || first.includes(':') || first === 'localhost');
  const [host, path] = named ? [first, rest.join('/')] : ['docker.io', name];
  return `${host}/${publicNames.has(host) && !path.includes('/') ? `library/${path}` : path}`;
}

/** A path that only states the protocol version refers to the whole registry. */
function parsePattern(text: string): RegistryPattern {
  const [address = '', ...parts] = text
    .trim()
    .replace(/^https?:\/\//, '')
    .split('/');
  const [, host = '', port = ''] = /^(.*?)(?::(\d+))?$/.exec(address) ?? [];
  if (/^v[12]$/.test(parts[0] ?? '')) parts.shift();
  return {
    host: publicNames.has(host) ? 'docker.io' : host.toLowerCase(),
    port,
    path: parts.filter((part) => part !== '').join('/'),
  };
}

function matchesGlob(glob: string, label: string): boolean {
  const source = glob.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${source.join('.*')}$`).test(label);
}

/**
 * Credentials for the repository of a reference: in the order of the secrets, and within a secret the longest match
 * first. Entries that cannot be parsed are skipped.
 */
export function pullCredentials(reference: string, secrets: readonly Secret[]): ImageAuth[] {
  return secrets.flatMap((secret) =>
    Object.entries(registriesOf(secret))
      .map(([server, entry]) => ({ server, entry, closeness: registryMatch(server, reference) }))
      .filter(({ closeness }) => closeness !== undefined)
      .sort((a, b) => (b.closeness ?? 0) - (a.closeness ?? 0))
      .flatMap(({ server, entry }) => authOf(server, entry)),
  );
}

function registriesOf(secret: Secret): Record<string, unknown> {
  const data: Record<string, string> = secret.data ?? {};
  const modern = readJson(data['.dockerconfigjson']);
  if (isJsonObject(modern['auths'])) return modern['auths'];
  return readJson(data['.dockercfg']);
}

function readJson(base64: string | undefined): Record<string, unknown> {
  return parseJsonObject(Buffer.from(base64 ?? '', 'base64').toString('utf8')) ?? {};
}

function authOf(server: string, entry: unknown): ImageAuth[] {
  if (!isJsonObject(entry)) return [];
  const text = (key: string) => (typeof entry[key] === 'string' ? (entry[key] as string) : undefined);
  const pair = Buffer.from(text('auth') ?? '', 'base64').toString('utf8');
  const colon = pair.indexOf(':');
  const username = text('username') ?? (colon > 0 ? pair.slice(0, colon) : undefined);
  const password = text('password') ?? (colon > 0 ? pair.slice(colon + 1) : undefined);
  const identityToken = text('identitytoken');
  const registryToken = text('registrytoken');
  if (username === undefined && identityToken === undefined && registryToken === undefined) return [];
  return [
    {
      serverAddress: server,
      ...(username === undefined ? {} : { username }),
      ...(password === undefined ? {} : { password }),
      ...(identityToken === undefined ? {} : { identityToken }),
      ...(registryToken === undefined ? {} : { registryToken }),
    },
  ];
}

/** Files of the options; undefined = the option is absent. */
export interface CloudCredentialFiles {
  readonly cloudAConfig?: string | undefined;
  readonly cloudBKey?: string | undefined;
}

/** The content of a credential file: the account, and the registries that accept it. */
interface CloudAccount {
  readonly auth: ImageAuth;
  readonly registries: readonly string[];
}

interface CloudFile {
  readonly option: string;
  readonly path: string;
  readonly parse: (bytes: Buffer) => CloudAccount;
}

/** Default registries of the clouds. A file can list others in `registries`. */
const registriesOfA = ['*.azurecr.io', '*.azurecr.cn', '*.azurecr.de', '*.azurecr.us'];
const registriesOfB = ['gcr.io', '*.gcr.io', '*.pkg.dev'];

/**
 * Credentials of the node for registries of clouds. The files are read for every pull, so that they can be replaced. A
 * file that cannot be read or parsed is ignored; a warning is logged once for each reason.
 */
export class CloudCredentials {
  readonly #files: readonly CloudFile[];
  readonly #logger: Logger;
  readonly #reported = new Map<string, string>();

  constructor({ cloudAConfig, cloudBKey }: CloudCredentialFiles, logger: Logger) {
    this.#logger = logger;
    this.#files = [
      ...(cloudAConfig
        ? [{ option: 'cloud-a-container-registry-config', path: cloudAConfig, parse: parseConfigOfA }]
        : []),
      ...(cloudBKey ? [{ option: 'cloud-b-json-key', path: cloudBKey, parse: parseKeyOfB }] : []),
    ];
  }

  /** Logs errors of the files at start. */
  async check(): Promise<void> {
    for (const file of this.#files) await this.#read(file);
  }

  /** Credentials for the registry of a reference. */
  async find(reference: string): Promise<readonly ImageAuth[]> {
    const found: ImageAuth[] = [];
    for (const file of this.#files) {
      const account = await this.#read(file);
      const fits = account?.registries.some((pattern) => registryMatch(pattern, reference) !== undefined);
      if (account !== undefined && fits) found.push(account.auth);
    }
    return found;
  }

  async #read({ option, path, parse }: CloudFile): Promise<CloudAccount | undefined> {
    try {
      const account = parse(await readFile(path));
      this.#reported.delete(option);
      return account;
    } catch (error) {
      // Only the kind of the error: messages of parsers quote their input, which is a secret.
      const problem = error instanceof BadFile ? error.message : readProblem(error);
      if (this.#reported.get(option) !== problem) {
        this.#logger.warn('credentials of a cloud cannot be used', {
          component: 'agent',
          option: `--${option}`,
          path,
          problem,
        });
      }
      this.#reported.set(option, problem);
      return undefined;
    }
  }
}

class BadFile extends Error {}

/** Parses the configuration of cloud a (YAML or JSON): the application as which the node authenticates. */
function parseConfigOfA(bytes: Buffer): CloudAccount {
  const config: unknown = parseYaml(bytes).value;
  if (!isJsonObject(config)) throw new BadFile('it is not a map');
  const { aadClientId: username, aadClientSecret: password, registries } = config;
  if (config['useManagedIdentityExtension'] === true)
    throw new BadFile('identities managed by the cloud are not supported');
  if (typeof username !== 'string' || typeof password !== 'string' || username === '') {
    throw new BadFile('it lacks aadClientId or aadClientSecret');
  }
  return { auth: { username, password }, registries: registriesIn(registries) ?? registriesOfA };
}

/**
 * Parses a service account key of cloud b: its registries accept the whole file as the password of the user
 * `_json_key`.
 */
function parseKeyOfB(bytes: Buffer): CloudAccount {
  const text = bytes.toString('utf8');
  const key: unknown = JSON.parse(text);
  if (!isJsonObject(key)) throw new BadFile('it is not an object');
  if (key['type'] !== 'service_account') throw new BadFile('it is not a key of a service account');
  for (const field of ['client_email', 'private_key'])
    if (typeof key[field] !== 'string') throw new BadFile(`it lacks ${field}`);
  const { registries, ...account } = key;
  const password = registries === undefined ? text : JSON.stringify(account);
  return { auth: { username: '_json_key', password }, registries: registriesIn(registries) ?? registriesOfB };
}

function registriesIn(value: unknown): readonly string[] | undefined {
  if (value === undefined) return undefined;
  if (Array.isArray(value) && value.every((entry) => typeof entry === 'string')) return value;
  throw new BadFile('registries is not a list of texts');
}

function readProblem(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (/^E[A-Z]+$/.test(code)) return `it cannot be read: ${code}`;
  return 'it cannot be parsed';
}
