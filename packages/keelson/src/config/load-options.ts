import { isIP } from 'node:net';
import { join, resolve } from 'node:path';
import { parseCommandLine, parseEnvironment, type RawOptions } from './command-line.ts';
import { readConfigFile } from './config-file.ts';
import { optionTable, type ServerOptions } from './options.ts';
import { valueParsers } from './parse-value.ts';
import { UsageError } from './usage-error.ts';

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

/** True for addresses that only this machine can reach. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** Merges all sources, strongest first: command line, environment, config file, default. Throws `UsageError`. */
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
    throw new UsageError(
      '--allowed-host is for --insecure; with authentication a server may be reached under any host, so remove it',
    );
  }
  if (options.insecure && options.tokenAuthFile !== undefined) {
    throw new UsageError(
      '--insecure and --token-auth-file exclude each other: without authentication nobody is asked for a token',
    );
  }
  return options;
}
