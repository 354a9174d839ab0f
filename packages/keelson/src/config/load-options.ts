import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import {
  type GivenValues,
  mergeValues,
  parseArguments,
  parseConfigDocument,
  parseFields,
  parseVariables,
  UsageError,
} from '@keelson/core/internal';
import { checkAuthentication } from './authentication-options.ts';
import { optionTable, type ServerOptions } from './options.ts';

/** Prefixes of environment variables that belong to the tests of the project and to the node agent. */
const foreignPrefixes = ['KEELSON_TEST_', 'KEELSON_AGENT_'];

/**
 * Merges all sources in the order of precedence: command line, environment, config file, default. @throws UsageError
 */
export async function loadOptions(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<ServerOptions> {
  const { given: fromFlags } = parseArguments(args, optionTable, 'keelson');
  const fromVariables = parseVariables(env, optionTable, 'KEELSON_', foreignPrefixes);
  const { config } = mergeValues(optionTable, fromFlags, fromVariables) as { readonly config?: string };
  const fromFile = config === undefined ? new Map() : await readConfigFile(config);
  const merged = Object.fromEntries(
    Object.entries(mergeValues(optionTable, fromFlags, fromVariables, fromFile)).filter(
      ([name, value]) => value !== undefined && name !== 'config',
    ),
    // Each value has been parsed by the type of its option.
  ) as unknown as Omit<ServerOptions, 'storage'> & Partial<Pick<ServerOptions, 'storage'>>;
  const options = { storage: `lmdb:${join(merged.data, 'store')}`, ...merged };
  checkOptions(options);
  return options;
}

function checkOptions(options: ServerOptions): void {
  const { insecure, listen, allowedHosts } = options;
  if (insecure && !isLoopback(listen.host))
    throw new UsageError(
      `--insecure serves loopback addresses only; remove it or use --listen 127.0.0.1:${listen.port}`,
    );
  const { tlsCertFile, tlsPrivateKeyFile } = options;
  if ((tlsCertFile === undefined) !== (tlsPrivateKeyFile === undefined))
    throw new UsageError('--tls-cert-file and --tls-private-key-file require each other');
  if (insecure && tlsCertFile !== undefined)
    throw new UsageError('--insecure and --tls-cert-file exclude each other: plain HTTP has no certificate');
  if (!insecure && allowedHosts.length > 0)
    throw new UsageError('--allowed-host requires --insecure; a server with authentication accepts every host name');
  checkAuthentication(options);
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

async function readConfigFile(path: string): Promise<GivenValues> {
  const source = `--config ${path}`;
  let bytes: Buffer;
  try {
    bytes = await readFile(path);
  } catch (cause) {
    throw new UsageError(`${source} cannot be read: ${(cause as Error).message}`);
  }
  return parseFields(parseConfigDocument(bytes, source), optionTable, source, dirname(resolve(path)));
}
