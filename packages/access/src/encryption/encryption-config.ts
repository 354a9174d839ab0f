import { type Infer, type KindDefinition, optional, s, typeMetaFields } from '@keelson/core';
import { didYouMean, kindPrefix, maxKeyNameLength, tokenSecretKey, UsageError } from '@keelson/core/internal';
import { parseConfig } from '../read-config.ts';
import { ValueCipher } from './value-cipher.ts';

const keySchema = s.message('keelson.encryption.Key', 'A key.', {
  name: optional(undefined, s.string(), 'Name, which is stored with each value.'),
  secret: optional(undefined, s.string(), '32 random bytes in base64.'),
});

const providerSchema = s.message('keelson.encryption.Provider', 'One way to store values.', {
  aesgcm: optional(
    undefined,
    s.message('keelson.encryption.AesGcm', 'AES-256-GCM.', {
      keys: optional(undefined, s.list(keySchema), 'The first encrypts, all decrypt.'),
    }),
    'AES-256-GCM with data keys.',
  ),
  identity: optional(undefined, s.any(), 'No encryption.'),
  aescbc: optional(undefined, s.any(), 'Not supported.'),
  secretbox: optional(undefined, s.any(), 'Not supported.'),
  kms: optional(undefined, s.any(), 'Not supported.'),
});

const configSchema = s.message('keelson.encryption.Configuration', 'How the objects of kinds are stored.', {
  ...typeMetaFields,
  resources: optional(
    undefined,
    s.list(
      s.message('keelson.encryption.Resource', 'Providers of some resources.', {
        resources: optional(undefined, s.list(s.string()), 'Plurals with groups; *.GROUP and *.* for all.'),
        providers: optional(undefined, s.list(providerSchema), 'The first writes, all read.'),
      }),
    ),
    'The first entry with a resource applies.',
  ),
});

/** How the objects of some kinds are stored. */
export interface ValueProviders {
  /** The first provider; undefined for identity: values are written without encryption. */
  readonly writer: ValueCipher | undefined;
  /** Every key, by name. */
  readonly readers: ReadonlyMap<string, ValueCipher>;
  /** Whether values without encryption are accepted. */
  readonly identity: boolean;
}

/** An encryption configuration: see docs/how-to/encrypt-at-rest.md. */
export class EncryptionConfig {
  readonly #entries: readonly { readonly prefixes: ReadonlySet<string>; readonly providers: ValueProviders }[];
  readonly #known = new Map<string, ValueProviders | undefined>();
  readonly #ofSecret: ValueProviders;

  constructor(entries: readonly { readonly prefixes: ReadonlySet<string>; readonly providers: ValueProviders }[]) {
    this.#entries = entries;
    const all = entries.map(({ providers }) => providers);
    this.#ofSecret = {
      writer: all.find(({ writer }) => writer !== undefined)?.writer,
      readers: new Map(all.flatMap(({ readers }) => [...readers])),
      identity: all.some(({ identity }) => identity),
    };
  }

  /**
   * The providers of the kind to which a storage key belongs; undefined when the configuration does not contain the
   * kind. The secret of continue tokens can be read by the providers of all kinds.
   */
  of(key: string): ValueProviders | undefined {
    if (key === tokenSecretKey) return this.#ofSecret;
    const prefix = prefixOf(key);
    if (prefix === undefined) return undefined;
    if (this.#known.has(prefix)) return this.#known.get(prefix);
    const group = `${prefix.slice(0, prefix.indexOf('/', 1) + 1)}*`;
    const found = this.#entries.find(
      ({ prefixes }) => prefixes.has(prefix) || prefixes.has(group) || prefixes.has(everything),
    )?.providers;
    this.#known.set(prefix, found);
    return found;
  }
}

const everything = '*';

/** `/group/plural/` of a storage key. */
export function prefixOf(key: string): string | undefined {
  if (!key.startsWith('/')) return undefined;
  const end = key.indexOf('/', key.indexOf('/', 1) + 1);
  return end <= 1 ? undefined : key.slice(0, end + 1);
}

/**
 * Parses an EncryptionConfiguration of `apiserver.config.k8s.io/v1`. Messages never contain secrets.
 *
 * @param kinds the served kinds; a name that belongs to none of them is an error, because its objects would silently
 *   not be encrypted
 * @throws UsageError
 */
export function parseEncryptionConfig(
  bytes: Buffer,
  kinds: readonly KindDefinition[],
  source: string,
): EncryptionConfig {
  const type = { apiVersion: 'apiserver.config.k8s.io/v1', kind: 'EncryptionConfiguration', schema: configSchema };
  const { resources: entries = [] } = parseConfig(bytes, type, source);
  if (entries.length === 0) throw new UsageError(`${source} must contain at least one entry of resources`);
  const secrets = new Map<string, ValueCipher>();
  return new EncryptionConfig(
    entries.map(({ resources = [], providers = [] }, i) => {
      const at = `${source}: resources[${i}]`;
      if (resources.length === 0) throw new UsageError(`${at}.resources must contain at least one resource`);
      return {
        prefixes: new Set(resources.flatMap((name, j) => prefixesOf(name, kinds, `${at}.resources[${j}]`))),
        providers: providersOf(providers, secrets, `${at}.providers`),
      };
    }),
  );
}

function prefixesOf(name: string, kinds: readonly KindDefinition[], at: string): string[] {
  const stored = kinds.filter((kind) => !kind.virtual);
  if (name === '*.*') return [everything];
  if (name === '*') throw new UsageError(`${at}: use "*.*" for all resources, or "*." for those of the core group`);
  if (name.startsWith('*.')) {
    const group = name.slice(2);
    const own = stored.filter((kind) => kind.group === group).map(kindPrefix);
    return [`/${group === '' ? 'core' : group}/*`, ...own];
  }
  const nameOf = ({ names, group }: KindDefinition) => (group === '' ? names.plural : `${names.plural}.${group}`);
  const found = stored.filter((kind) => nameOf(kind) === name);
  if (found.length > 0) return found.map(kindPrefix);
  const inGroup = stored.find(({ names }) => names.plural === name);
  const hint = inGroup === undefined ? didYouMean(name, stored.map(nameOf)) : `; did you mean ${nameOf(inGroup)}?`;
  throw new UsageError(`${at}: no stored resource is named ${name}${hint}`);
}

type ProviderFields = Infer<typeof providerSchema>;

const refused = ['aescbc', 'secretbox', 'kms'] as const;

function providersOf(
  providers: readonly ProviderFields[],
  secrets: Map<string, ValueCipher>,
  at: string,
): ValueProviders {
  if (providers.length === 0) throw new UsageError(`${at} must contain at least one provider`);
  const readers = new Map<string, ValueCipher>();
  let writer: ValueCipher | undefined;
  let identity = false;
  for (const [i, provider] of providers.entries()) {
    const here = `${at}[${i}]`;
    const other = refused.find((name) => provider[name] !== undefined);
    if (other !== undefined)
      throw new UsageError(
        `${here}: the provider ${other} is not supported; use aesgcm, or identity for no encryption`,
      );
    if ((provider.aesgcm === undefined) === (provider.identity === undefined))
      throw new UsageError(`${here} must contain exactly one of aesgcm and identity`);
    if (provider.aesgcm === undefined) {
      identity = true;
      continue;
    }
    const { keys = [] } = provider.aesgcm;
    if (keys.length === 0) throw new UsageError(`${here}.aesgcm.keys must contain at least one key`);
    for (const [j, { name = '', secret = '' }] of keys.entries()) {
      const cipher = cipherOf(name, secret, secrets, `${here}.aesgcm.keys[${j}]`);
      if (readers.has(name)) throw new UsageError(`${here}.aesgcm.keys[${j}].name ${name} is used twice`);
      readers.set(name, cipher);
      if (i === 0) writer ??= cipher;
    }
  }
  return { writer, readers, identity };
}

const keyName = new RegExp(`^[A-Za-z0-9._-]{1,${maxKeyNameLength}}$`);

function cipherOf(name: string, secret: string, secrets: Map<string, ValueCipher>, at: string): ValueCipher {
  if (!keyName.test(name))
    throw new UsageError(`${at}.name must be 1 to ${maxKeyNameLength} characters of A-Z, a-z, 0-9, ".", "_" and "-"`);
  const bytes = Buffer.from(secret, 'base64');
  if (bytes.length !== 32 || bytes.toString('base64') !== secret.trim())
    throw new UsageError(`${at}.secret must be 32 bytes in base64; create one with: head -c 32 /dev/urandom | base64`);
  const cipher = new ValueCipher(name, bytes);
  const known = secrets.get(name);
  if (known === undefined) secrets.set(name, cipher);
  else if (!known.equals(cipher)) throw new UsageError(`${at}.name ${name} is also the name of another secret`);
  return known ?? cipher;
}
