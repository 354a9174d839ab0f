import { isIP } from 'node:net';
import { resolve } from 'node:path';
import {
  isJsonObject,
  listOf,
  type Option,
  parseBool,
  rejectUnknownKeys,
  requiredText,
  textType,
  type ValueType,
  valueType,
  wrongValue,
} from '@keelson/core/internal';
import type { ListenAddress, ServerOptions } from './options.ts';
import { parseStorage, type StorageChoice } from './storage-choice.ts';

/** An option of the server. Its name is its key in config files. */
export type Declared<T> = Omit<Option<string, T>, 'name' | 'field'>;

/** `HOST:PORT`; the host of an IPv6 address is in brackets. */
export const listenAddress: ValueType<ListenAddress> = textType(
  'HOST:PORT',
  (text, source) => {
    const match = /^(\[[0-9a-fA-F:.]+\]|[^:\s]+):(\d{1,5})$/.exec(text);
    const port = Number(match?.[2]);
    if (match === null || port > 65_535) throw wrongValue(source, 'HOST:PORT, e.g. 127.0.0.1:6443', text);
    return { host: (match[1] ?? '').replace(/^\[|\]$/g, ''), port };
  },
  ({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`,
);

/** An absolute path; the text may be relative to the working directory, in a config file to its directory. */
export function path(name: string): ValueType<string> {
  return valueType(name, (raw, source, directory = '.') => resolve(directory, requiredText(raw, source)));
}

/** Names of packages, and paths of modules that begin with a dot or a slash. */
export const modules: ValueType<readonly string[]> = listOf('MODULE', (text, source, directory) => {
  const name = requiredText(text, source);
  return directory !== undefined && name.startsWith('.') ? resolve(directory, name) : name;
});

/** Entries with a slash are modules; in a config file their paths are relative to its directory. */
const names: ValueType<readonly string[]> = listOf('NAMES', (text, source, directory) => {
  const name = requiredText(text.trim(), source);
  return directory !== undefined && /^\.\.?\//.test(name) ? resolve(directory, name) : name;
});

/**
 * Names of controllers, and paths of modules that export controllers. True stands for the set `api`, false for no
 * controller; a config file may contain both as text or as a boolean.
 */
export const controllerNames: ValueType<readonly string[]> = {
  name: 'NAMES',
  parse(line, source, earlier) {
    const all = parseBool(line);
    return all === undefined ? names.parse(line, source, earlier) : all ? ['api'] : [];
  },
  fromFile(raw, source, directory) {
    if (typeof raw === 'boolean') return raw ? ['api'] : [];
    return names.fromFile(raw, source, directory);
  },
  format: (values) => (values.length === 0 ? 'false' : values.join(',')),
};

/** Host names and addresses without ports. */
export const hosts: ValueType<readonly string[]> = listOf('HOST', (host, source) => {
  if (isIP(host) !== 0 || /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(host)) return host;
  throw wrongValue(source, 'a host name or an IP address without a port', host);
});

export const brand: ValueType<ServerOptions['brand']> = valueType(
  'BRAND',
  (raw, source) => {
    if (!isJsonObject(raw)) throw wrongValue(source, 'an object with vendor and metaGroup', raw);
    rejectUnknownKeys(raw, ['vendor', 'metaGroup'], source);
    const { vendor = 'kubernetes', metaGroup = 'meta.k8s.io' } = raw;
    if (!/^[a-z0-9][a-z0-9.-]*$/.test(String(vendor)))
      throw wrongValue(`${source}.vendor`, 'a text of a-z, 0-9, "." and "-"', vendor);
    return {
      vendor: requiredText(vendor, `${source}.vendor`),
      metaGroup: requiredText(metaGroup, `${source}.metaGroup`),
    };
  },
  ({ vendor, metaGroup }) => `vendor: ${vendor}, metaGroup: ${metaGroup}`,
);

/** One store or several; paths in a config file are relative to the directory of the file. */
export const storage: ValueType<StorageChoice> = valueType('URL', (raw, source, directory) =>
  parseStorage(directory === undefined ? raw : withAbsolutePaths(raw, directory), source),
);

/** Resolves the modules of adapters and the directories of embedded stores. The parser checks all other values. */
function withAbsolutePaths(raw: unknown, base: string): unknown {
  if (typeof raw === 'string')
    return raw.replace(/^lmdb:(?=.)(.*)$/s, (_, directory: string) => `lmdb:${resolve(base, directory)}`);
  if (Array.isArray(raw)) return raw.map((item) => withAbsolutePaths(item, base));
  if (!isJsonObject(raw)) return raw;
  const out: Record<string, unknown> = { ...raw };
  for (const key of ['default', 'routes', 'storage', 'url'])
    if (out[key] !== undefined) out[key] = withAbsolutePaths(out[key], base);
  const { adapter, path: directory } = out;
  if (typeof adapter === 'string' && adapter.startsWith('.')) out['adapter'] = resolve(base, adapter);
  if (adapter === 'lmdb' && typeof directory === 'string') out['path'] = resolve(base, directory);
  return out;
}
