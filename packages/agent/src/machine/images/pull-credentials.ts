import { readFile } from 'node:fs/promises';
import type { ImageAuth } from '@keelson/container-runtime';
import { type Logger, parseYaml } from '@keelson/core';
import type { Secret } from '@keelson/kinds';
import { isRecord } from '../../base/is-record.ts';

/** A registry, or a part of one, as credentials name it: `https://*.example:5000/team`. */
interface RegistryPattern {
  readonly host: string;
  readonly port: string;
  readonly path: string;
}

const publicNames = new Set(['docker.io', 'index.docker.io', 'registry-1.docker.io']);

/**
 * How closely a pattern names the repository of a reference, in characters; undefined when it does not. Hosts match
 * label by label, where `*` stands for anything within one; ports must be the same; paths match from their beginning.
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
 * Registry and path: the first part of a reference is a registry if it looks like a host; else it is the public one.
 */
function repositoryOf(reference: string): string {
  const name = reference.replace(/@.*$/, '').replace(/:[^:/]*$/, '');
  const [first = '', ...rest] = name.split('/');
  const named = rest.length > 0 && (first.includes('.') || first.includes(':') || first === 'localhost');
  const [host, path] = named ? [first, rest.join('/')] : ['docker.io', name];
  return `${host}/${publicNames.has(host) && !path.includes('/') ? `library/${path}` : path}`;
}

/** Paths that only name the version of the protocol mean the whole registry. */
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
 * Credentials in the pull secrets for the repository of a reference: in the order of the secrets, and in each of them
 * those that name it most closely first. What cannot be read is passed over.
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
  if (isRecord(modern['auths'])) return modern['auths'];
  return readJson(data['.dockercfg']);
}

function readJson(base64: string | undefined): Record<string, unknown> {
  if (base64 === undefined) return {};
  try {
    const value: unknown = JSON.parse(Buffer.from(base64, 'base64').toString('utf8'));
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

function authOf(server: string, entry: unknown): ImageAuth[] {
  if (!isRecord(entry)) return [];
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

/** Files that the options name; undefined: the option was not given. */
export interface CloudCredentialFiles {
  readonly cloudAConfig?: string | undefined;
  readonly cloudBKey?: string | undefined;
}

/** What a file of a cloud gives: who the node is, and to which registries. */
interface CloudAccount {
  readonly auth: ImageAuth;
  readonly registries: readonly string[];
}

interface CloudFile {
  readonly option: string;
  readonly path: string;
  readonly parse: (bytes: Buffer) => CloudAccount;
}

/**
 * Registries of the clouds themselves; files may name others in `registries`, for registries under names of one's own.
 */
const registriesOfA = ['*.azurecr.io', '*.azurecr.cn', '*.azurecr.de', '*.azurecr.us'];
const registriesOfB = ['gcr.io', '*.gcr.io', '*.pkg.dev'];

/**
 * Credentials of the node for registries of clouds. The files are read again for every pull, so that they may be
 * replaced; one that cannot be read or understood is warned of, once for each reason, and then gives nothing.
 */
export class CloudCredentials {
  readonly #files: readonly CloudFile[];
  readonly #logger: Logger;
  readonly #said = new Map<string, string>();

  constructor({ cloudAConfig, cloudBKey }: CloudCredentialFiles, logger: Logger) {
    this.#logger = logger;
    this.#files = [
      ...(cloudAConfig
        ? [{ option: 'cloud-a-container-registry-config', path: cloudAConfig, parse: parseConfigOfA }]
        : []),
      ...(cloudBKey ? [{ option: 'cloud-b-json-key', path: cloudBKey, parse: parseKeyOfB }] : []),
    ];
  }

  /** Says at once what is wrong with the files. */
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
      this.#said.delete(option);
      return account;
    } catch (error) {
      // Not more than the kind of problem: messages of parsers quote what they read, and this is a secret.
      const problem = error instanceof BadFile ? error.message : readProblem(error);
      if (this.#said.get(option) !== problem) {
        this.#logger.warn('credentials of a cloud cannot be used', {
          component: 'agent',
          option: `--${option}`,
          path,
          problem,
        });
      }
      this.#said.set(option, problem);
      return undefined;
    }
  }
}

class BadFile extends Error {}

/** A configuration of cloud a in YAML or JSON: the application that the node signs in as. */
function parseConfigOfA(bytes: Buffer): CloudAccount {
  const config: unknown = parseYaml(bytes).value;
  if (!isRecord(config)) throw new BadFile('it is not a map');
  const { aadClientId: username, aadClientSecret: password, registries } = config;
  if (config['useManagedIdentityExtension'] === true)
    throw new BadFile('identities managed by the cloud are not supported');
  if (typeof username !== 'string' || typeof password !== 'string' || username === '') {
    throw new BadFile('it lacks aadClientId or aadClientSecret');
  }
  return { auth: { username, password }, registries: registriesIn(registries) ?? registriesOfA };
}

/** A key of a service account of cloud b: its registries take the whole file as the password of a user `_json_key`. */
function parseKeyOfB(bytes: Buffer): CloudAccount {
  const text = bytes.toString('utf8');
  const key: unknown = JSON.parse(text);
  if (!isRecord(key)) throw new BadFile('it is not an object');
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
