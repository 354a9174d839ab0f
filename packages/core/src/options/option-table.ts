import { parseArgs } from 'node:util';
import { parseYaml } from '../codec/yaml.ts';
import { isDocumentError } from '../json/document-error.ts';
import { isJsonObject } from '../json/json.ts';
import { didYouMean, UsageError } from './usage-error.ts';
import type { RawObject, ValueType } from './value-types.ts';

/** One option of a program. The parsers of all sources, the help text and the reference page are derived from it. */
export interface Option<N extends string, T> {
  /** Name of the value in the result. */
  readonly name: N;
  /** Name on the command line with its dashes; absent: the option has no flag. */
  readonly flag?: string;
  /** Environment variable; absent: the option has none. */
  readonly variable?: string;
  /** Name in a config file; absent: config files do not contain the option. */
  readonly field?: string;
  readonly type: ValueType<T>;
  readonly default: T;
  /** The default in the help text, where the value does not describe it. */
  readonly shownDefault?: string;
  readonly help: string;
  /** Present for a deprecated option: the text of the warning when it is used. */
  readonly deprecated?: string;
}

/** An option of any name and type. */
// biome-ignore lint/suspicious/noExplicitAny: a table contains options of every type
export type AnyOption = Option<string, any>;

/** The values of some options, by name. */
export type ValuesOf<O extends AnyOption> = {
  readonly [R in O as R['name']]: R extends Option<string, infer T> ? T : never;
};

/** The values that one source gives, by name of the option. */
export type GivenValues = ReadonlyMap<string, unknown>;

export interface ParsedArguments {
  readonly given: GivenValues;
  /** True for `--help` and `-h`. */
  readonly help: boolean;
}

/**
 * Parses the arguments of a program. A value follows as `--flag VALUE` or `--flag=VALUE`, that of a switch only as
 * `--flag=VALUE`; it may begin with a dash, but is not a flag of the program. `_` counts as `-` in names.
 *
 * @param program its name in messages
 * @throws UsageError
 */
export function parseArguments(args: readonly string[], table: readonly AnyOption[], program: string): ParsedArguments {
  const byFlag = new Map(table.flatMap((row) => (row.flag === undefined ? [] : [[row.flag, row] as const])));
  const rowOf = (spelled: string) => byFlag.get(spelled.replaceAll('_', '-'));
  const spelled = args.map((word) => word.split('=', 1)[0] ?? '').filter((word) => rowOf(word) !== undefined);
  const { tokens } = parseArgs({
    args: [...args],
    options: {
      ...Object.fromEntries(
        spelled.map((word) => [word.slice(2), { type: rowOf(word)?.type.bare === undefined ? 'string' : 'boolean' }]),
      ),
      help: { type: 'boolean', short: 'h' },
    },
    strict: false,
    tokens: true,
  });
  const given = new Map<string, unknown>();
  let help = false;
  for (const token of tokens) {
    if (token.kind !== 'option' || !(token.rawName.startsWith('--') || token.name === 'help')) {
      const rule = 'options begin with -- and a switch accepts its value as --name=value';
      throw new UsageError(`unexpected argument ${JSON.stringify(args[token.index])}; ${rule}`);
    }
    if (token.name === 'help') {
      help = true;
      continue;
    }
    const row = rowOf(token.rawName);
    if (row === undefined) {
      const hint = didYouMean(token.rawName, [...byFlag.keys()], `; see ${program} --help`);
      throw new UsageError(`unknown option ${token.rawName}${hint}`);
    }
    const value = token.value ?? row.type.bare;
    const isFlag = token.inlineValue === false && byFlag.has(value?.split('=', 1)[0] ?? '');
    if (value === undefined || isFlag)
      throw new UsageError(`${row.flag} requires a value: ${row.flag} ${row.type.name}`);
    given.set(row.name, row.type.parse(value, row.flag ?? row.name, given.get(row.name)));
  }
  return { given, help };
}

/**
 * Parses the variables of a program: those with its prefix.
 *
 * @param foreign prefixes of variables of other programs
 * @throws UsageError
 */
export function parseVariables(
  env: Readonly<Record<string, string | undefined>>,
  table: readonly AnyOption[],
  prefix: string,
  foreign: readonly string[],
): GivenValues {
  const byVariable = new Map(
    table.flatMap((row) => (row.variable === undefined ? [] : [[row.variable, row] as const])),
  );
  const given = new Map<string, unknown>();
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith(prefix) || value === undefined) continue;
    const row = byVariable.get(name);
    if (row !== undefined) given.set(row.name, row.type.parse(value, name));
    else if (!foreign.some((other) => name.startsWith(other)))
      throw new UsageError(`unknown environment variable ${name}${didYouMean(name, [...byVariable.keys()])}`);
  }
  return given;
}

/**
 * Parses a config file in YAML or JSON.
 *
 * @param source the file in messages
 * @throws UsageError when it is not one object, or repeats a key
 */
export function parseConfigDocument(bytes: Buffer, source: string): RawObject {
  let parsed: ReturnType<typeof parseYaml>;
  try {
    parsed = parseYaml(bytes);
  } catch (error) {
    if (isDocumentError(error)) throw new UsageError(`${source} is not valid YAML or JSON: ${error.message}`);
    throw error;
  }
  const [twice] = parsed.duplicateFields;
  if (twice !== undefined) throw new UsageError(`${source} contains ${twice} twice`);
  if (!isJsonObject(parsed.value)) throw new UsageError(`${source} must contain an object`);
  return parsed.value;
}

/**
 * Converts the keys of a config file.
 *
 * @param directory directory of the file, to which relative paths refer
 * @throws UsageError
 */
export function parseFields(
  document: RawObject,
  table: readonly AnyOption[],
  source: string,
  directory: string,
): GivenValues {
  const byField = new Map(table.flatMap((row) => (row.field === undefined ? [] : [[row.field, row] as const])));
  return new Map(
    Object.entries(document).map(([key, raw]) => {
      const row = byField.get(key);
      if (row === undefined)
        throw new UsageError(`${source}: unknown key ${key}${didYouMean(key, [...byField.keys()])}`);
      return [row.name, row.type.fromFile(raw, `${source}: ${key}`, directory)];
    }),
  );
}

/**
 * The value of every option: from the first source that gives one, otherwise the default.
 *
 * @param sources in the order of precedence
 */
export function mergeValues(table: readonly AnyOption[], ...sources: readonly GivenValues[]): Record<string, unknown> {
  return Object.fromEntries(
    table.map((row) => {
      const source = sources.find((given) => given.has(row.name));
      return [row.name, source === undefined ? row.default : source.get(row.name)];
    }),
  );
}

/** The default of an option in the help text and on the reference page; empty for none. */
export function defaultText({ type, default: value, shownDefault }: AnyOption): string {
  return shownDefault ?? (value === undefined ? '' : type.format(value));
}

/** The description of an option, with the notice that it is deprecated. */
export function descriptionOf({ help, deprecated }: AnyOption): string {
  return deprecated === undefined ? help : `${help} Deprecated: ${deprecated}.`;
}

/** The flags of a table in the help text, two lines each. */
export function flagsHelp(table: readonly AnyOption[]): string {
  return table
    .filter(({ flag }) => flag !== undefined)
    .map((row) => {
      const shown = defaultText(row);
      const head = `  ${row.flag} ${row.type.name}${shown === '' ? '' : ` (default ${shown})`}`;
      return `${head}\n      ${descriptionOf(row)}\n`;
    })
    .join('');
}
