import { join } from 'node:path';
import { createHttpClient, type HttpApiClient, kubeconfigAccess, loadKubeconfig } from '@keelson/client';
import {
  type AnyOption,
  flagsHelp,
  mergeValues,
  parseArguments,
  parseVariables,
  text,
  UsageError,
} from '@keelson/core/internal';
import { optionTable } from '../config/options.ts';
import { kubeconfigFile } from '../tls/kubeconfig.ts';

/** A command that is a client of a running server: its synopsis and options. */
export interface ApiCommand {
  /** Name of the command, such as `keelson user add`. */
  readonly name: string;
  /** The lines before the options in the help text. */
  readonly synopsis: string;
  readonly options: readonly AnyOption[];
}

export interface ParsedCommand {
  readonly positional: readonly string[];
  readonly values: Readonly<Record<string, unknown>>;
  readonly help: boolean;
}

const data = optionTable.filter(({ name }) => name === 'data');

/** Options that all commands for a running server have. */
export const apiOptions: readonly AnyOption[] = [
  ...data,
  {
    name: 'kubeconfig',
    flag: '--kubeconfig',
    type: text,
    default: undefined,
    shownDefault: 'kubeconfig under --data',
    help: 'credentials of an administrator, and the address of the server',
  },
];

/** Short flags, which are those of kubectl. */
const shortFlags: Readonly<Record<string, string>> = { '-n': '--namespace' };

/** Parses arguments that may stand between options. @throws UsageError */
export function parseCommand(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  { name, options }: ApiCommand,
): ParsedCommand {
  const positional: string[] = [];
  const flags: string[] = [];
  const rest = words.map((word) => shortFlags[word] ?? word);
  for (let i = 0; i < rest.length; i += 1) {
    const word = rest[i] ?? '';
    if (!word.startsWith('-')) {
      positional.push(word);
      continue;
    }
    flags.push(word);
    const row = options.find(({ flag }) => flag === word);
    const next = rest[i + 1];
    if (row !== undefined && row.type.bare === undefined && next !== undefined) {
      flags.push(next);
      i += 1;
    }
  }
  return { positional, ...parseFlags(flags, env, { name, options }) };
}

/** Parses the arguments of a command that has options only. @throws UsageError */
export function parseFlags(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  { name, options }: Pick<ApiCommand, 'name' | 'options'>,
): Omit<ParsedCommand, 'positional'> {
  const { given, help } = parseArguments(words, options, name);
  // Environment variables of other options of the server are ignored.
  const values = mergeValues(options, given, parseVariables(env, options, 'KEELSON_', ['KEELSON_']));
  return { values, help };
}

/** The help text of a command. */
export function commandHelp({ synopsis, options }: ApiCommand): string {
  return `${synopsis}\nOptions:\n${flagsHelp(options)}`;
}

/** A connection to the server, and what its kubeconfig states. */
export interface ServerAccess {
  readonly client: HttpApiClient;
  /** Creates a client whose writes have the field manager `userAgent`. */
  readonly clientOf: (userAgent: string) => HttpApiClient;
  /** URL of the server. */
  readonly server: string;
  readonly namespace: string | undefined;
  /** Authorities of the server's certificate, PEM. */
  readonly authority: string | undefined;
}

/** Connects with the kubeconfig of the options. @throws UsageError when there is none */
export async function connect(values: Readonly<Record<string, unknown>>): Promise<ServerAccess> {
  const given = values['kubeconfig'] as string | undefined;
  const path = given ?? join(String(values['data']), kubeconfigFile);
  try {
    const { options, namespace } = await kubeconfigAccess(await loadKubeconfig({ path }));
    const { server, ca } = options;
    const clientOf = (userAgent: string) => createHttpClient({ ...options, userAgent });
    return { client: clientOf('keelson'), clientOf, server, namespace, authority: ca?.toString() };
  } catch (error) {
    const fix = given === undefined ? 'start keelson serve or up with this --data first, or use --kubeconfig' : '';
    throw new UsageError(`${(error as Error).message}${fix === '' ? '' : `; ${fix}`}`);
  }
}
