import { UsageError } from '../../base/usage-error.ts';
import { nearestWord } from './nearest-word.ts';
import type { AnyOption } from './option.ts';
import { type AgentOptions, optionTable } from './option-table.ts';
import { ValueError } from './value-type.ts';

/** A parsed command line; combinations of options have not been checked yet. */
export interface ParsedOptions {
  readonly values: AgentOptions;
  /** Names of the options on the command line, independent of their value. */
  readonly given: ReadonlySet<string>;
  readonly help: boolean;
  /** One sentence per deprecated option that was used. */
  readonly warnings: readonly string[];
}

const byName: ReadonlyMap<string, AnyOption> = new Map(optionTable.map((row) => [row.name, row]));

function optionOf(word: string): AnyOption {
  const row = byName.get(word.slice(2).replaceAll('_', '-'));
  if (row !== undefined) return row;
  const near = nearestWord(word.slice(2), [...byName.keys()]);
  throw new UsageError(
    `unknown option ${word}${near === undefined ? '' : ` (did you mean --${near}?)`}; see keelson-agent --help`,
  );
}

function parseValue(row: AnyOption, text: string, earlier: unknown): unknown {
  try {
    return row.type.parse(text, earlier);
  } catch (error) {
    if (error instanceof ValueError) throw new UsageError(`--${row.name} ${error.message}`);
    throw error;
  }
}

/**
 * Parses the arguments of the command: see docs/reference/agent-rules.md#grammar-of-options. A value may begin with a
 * dash (`--port -5`), because an option that requires a value always takes the next argument.
 *
 * @throws UsageError
 */
export function parseOptions(words: readonly string[]): ParsedOptions {
  const found = new Map<string, unknown>();
  const warnings: string[] = [];
  let help = false;
  for (let index = 0; index < words.length; index += 1) {
    const word = words[index] ?? '';
    if (word === '--help' || word === '-h') {
      help = true;
      continue;
    }
    if (!word.startsWith('--') || word === '--') {
      const rule = 'options begin with -- and a switch accepts its value as --name=value';
      throw new UsageError(`unexpected argument ${JSON.stringify(word)}; ${rule}`);
    }
    const at = word.indexOf('=');
    const row = optionOf(at < 0 ? word : word.slice(0, at));
    let text = at < 0 ? row.type.bare : word.slice(at + 1);
    if (text === undefined) {
      index += 1;
      text = words[index];
      if (text === undefined) throw new UsageError(`--${row.name} needs a value (${row.type.name})`);
    }
    if (row.deprecated !== undefined && !found.has(row.name))
      warnings.push(`--${row.name} is deprecated: ${row.deprecated}`);
    found.set(row.name, parseValue(row, text, found.get(row.name)));
  }
  const values = Object.fromEntries(
    optionTable.map((row) => [row.name, found.has(row.name) ? found.get(row.name) : row.default]),
  );
  // The type is derived from the same table.
  return { values: values as AgentOptions, given: new Set(found.keys()), help, warnings };
}
