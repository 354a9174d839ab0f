import { parseArgs } from 'node:util';
import { optionTable } from './options.ts';
import { suggestion } from './suggest.ts';
import { UsageError } from './usage-error.ts';

/** Raw values by option key, as given; repeated options are lists. */
export type RawOptions = Readonly<Record<string, unknown>>;

/** Splits the words after the command name into options. A value follows as `--flag VALUE` or `--flag=VALUE`. */
export function parseCommandLine(words: readonly string[]): RawOptions {
  const rows = optionTable.filter((row) => row.flag !== undefined);
  const flags = rows.map((row) => row.flag ?? '');
  const { tokens } = parseArgs({
    args: [...words],
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
      throw new UsageError(`${token.rawName} needs a value: ${token.rawName} ${row.value}`);
    }
    const value = row.value === undefined ? (token.value ?? true) : token.value;
    raw[row.key] = row.repeatable ? [...((raw[row.key] as unknown[]) ?? []), value] : value;
  }
  return raw;
}

/** Variables that are not those of the server: the project's own tests, and the node agent. */
const foreignPrefixes = ['KEELSON_TEST_', 'KEELSON_AGENT_'];

/** Options from `KEELSON_*` variables; an unknown one is refused. */
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
