import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { parseYaml, suggestion, UsageError } from '@keelson/core/internal';
import { optionTable, type ServerOptions } from './options.ts';
import { valueParsers } from './parse-value.ts';

const defaults: Omit<ServerOptions, 'storage'> = {
  listen: { host: '127.0.0.1', port: 6443 },
  insecure: false,
  allowedHosts: [],
  reads: 'consistent',
  acceptNewStore: false,
  controllers: true,
  data: resolve('.keelson'),
  kinds: [],
  logLevel: 'info',
  brand: { vendor: 'kubernetes', metaGroup: 'meta.k8s.io' },
  continueTokenLifetimeMs: 300_000,
};

/** True for loopback addresses. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/**
 * Merges all sources in the order of precedence: command line, environment, config file, default. @throws UsageError
 */
export async function loadOptions(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<ServerOptions> {
  const fromWords = parseCommandLine(words);
  const fromEnv = parseEnvironment(env);
  const path = fromWords['config'] ?? fromEnv['config'];
  const fromFile = typeof path === 'string' ? await readConfigFile(path) : {};
  const sources: readonly (readonly [RawOptions, (row: (typeof optionTable)[number]) => string])[] = [
    [fromWords, (row) => row.flag ?? row.key],
    [fromEnv, (row) => row.env ?? row.key],
    [fromFile, (row) => `${String(path)}: ${row.key}`],
  ];
  const given: Record<string, unknown> = {};
  for (const row of optionTable) {
    if (row.key === 'config') continue;
    const source = sources.find(([raw]) => raw[row.key] !== undefined);
    if (source !== undefined) given[row.key] = valueParsers[row.key](source[0][row.key], source[1](row));
  }
  const merged = { ...defaults, ...given } as ServerOptions;
  const options: ServerOptions = { ...merged, storage: merged.storage ?? `lmdb:${join(merged.data, 'store')}` };
  if (options.insecure && !isLoopback(options.listen.host)) {
    throw new UsageError(
      `--insecure serves loopback addresses only; remove it or use --listen 127.0.0.1:${options.listen.port}`,
    );
  }
  if (!options.insecure && options.allowedHosts.length > 0) {
    throw new UsageError('--allowed-host requires --insecure; a server with authentication accepts every host name');
  }
  if (options.insecure && options.tokenAuthFile !== undefined) {
    throw new UsageError(
      '--insecure and --token-auth-file exclude each other: tokens are not read without authentication',
    );
  }
  return options;
}

/** Unparsed values by option key; repeated options are lists. */
export type RawOptions = Readonly<Record<string, unknown>>;

/** Parses the arguments after the command name. A value follows as `--flag VALUE` or `--flag=VALUE`. */
export function parseCommandLine(args: readonly string[]): RawOptions {
  const rows = optionTable.filter((row) => row.flag !== undefined);
  const flags = rows.map((row) => row.flag ?? '');
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(
      rows.map((row) => [(row.flag ?? '').slice(2), { type: row.value === undefined ? 'boolean' : 'string' } as const]),
    ),
    strict: false,
    tokens: true,
  });
  const raw: Record<string, unknown> = {};
  for (const token of tokens) {
    if (token.kind === 'positional')
      throw new UsageError(`unexpected argument ${JSON.stringify(token.value)}; options begin with --`);
    if (token.kind !== 'option') continue;
    const row = rows.find((candidate) => candidate.flag === token.rawName);
    if (row === undefined)
      throw new UsageError(`unknown option ${token.rawName}${suggestion(token.rawName, flags)}; see keelson --help`);
    if (row.value !== undefined && (token.value === undefined || token.value.startsWith('--'))) {
      throw new UsageError(`${token.rawName} requires a value: ${token.rawName} ${row.value}`);
    }
    const value = row.value === undefined ? (token.value ?? true) : token.value;
    raw[row.key] = row.repeatable ? [...((raw[row.key] as unknown[]) ?? []), value] : value;
  }
  return raw;
}

/** Prefixes of variables that belong to the tests of the project and to the node agent. */
const foreignPrefixes = ['KEELSON_TEST_', 'KEELSON_AGENT_'];

/** Reads options from `KEELSON_*` variables. @throws UsageError for an unknown variable */
export function parseEnvironment(env: Readonly<Record<string, string | undefined>>): RawOptions {
  const raw: Record<string, unknown> = {};
  const known = optionTable.flatMap((row) => row.env ?? []);
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith('KEELSON_') || value === undefined) continue;
    const row = optionTable.find((candidate) => candidate.env === name);
    if (row === undefined && foreignPrefixes.some((prefix) => name.startsWith(prefix))) continue;
    if (row === undefined) throw new UsageError(`unknown environment variable ${name}${suggestion(name, known)}`);
    raw[row.key] = value;
  }
  return raw;
}

/** Reads a YAML or JSON config file. Relative paths in it are relative to the directory of the file. */
export async function readConfigFile(path: string): Promise<RawOptions> {
  let bytes: Buffer;
  try {
    bytes = await readFile(path);
  } catch (cause) {
    throw new UsageError(`--config ${path} cannot be read: ${(cause as Error).message}`);
  }
  const { value, duplicateFields } = parse(bytes, path);
  if (duplicateFields[0] !== undefined) throw new UsageError(`--config ${path} contains ${duplicateFields[0]} twice`);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new UsageError(`--config ${path} must contain an object`);
  const keys = optionTable.map((row) => row.key).filter((key) => key !== 'config');
  for (const key of Object.keys(value)) {
    if (!(keys as string[]).includes(key))
      throw new UsageError(`--config ${path} has an unknown key ${key}${suggestion(key, keys)}`);
  }
  return withAbsolutePaths(value as Record<string, unknown>, dirname(resolve(path)));
}

function withAbsolutePaths(raw: Record<string, unknown>, base: string): RawOptions {
  const out = { ...raw };
  for (const key of ['data', 'tokenAuthFile']) if (typeof out[key] === 'string') out[key] = resolve(base, out[key]);
  if (out['storage'] !== undefined) out['storage'] = storageWithAbsolutePaths(out['storage'], base);
  const kinds = out['kinds'];
  if (Array.isArray(kinds))
    out['kinds'] = kinds.map((item: unknown) =>
      typeof item === 'string' && item.startsWith('.') ? resolve(base, item) : item,
    );
  return out;
}

/** Resolves the modules of adapters and the directories of embedded stores. The parser checks all other values. */
function storageWithAbsolutePaths(raw: unknown, base: string): unknown {
  if (typeof raw === 'string')
    return raw.replace(/^lmdb:(?=.)(.*)$/s, (_, path: string) => `lmdb:${resolve(base, path)}`);
  if (Array.isArray(raw)) return raw.map((item) => storageWithAbsolutePaths(item, base));
  if (typeof raw !== 'object' || raw === null) return raw;
  const out: Record<string, unknown> = { ...raw };
  for (const key of ['default', 'routes', 'storage', 'url'])
    if (out[key] !== undefined) out[key] = storageWithAbsolutePaths(out[key], base);
  const { adapter, path } = out;
  if (typeof adapter === 'string' && adapter.startsWith('.')) out['adapter'] = resolve(base, adapter);
  if (adapter === 'lmdb' && typeof path === 'string') out['path'] = resolve(base, path);
  return out;
}

function parse(bytes: Buffer, path: string): ReturnType<typeof parseYaml> {
  try {
    return parseYaml(bytes);
  } catch (cause) {
    throw new UsageError(`--config ${path} is not valid YAML: ${(cause as Error).message}`);
  }
}
