import { type GivenValues, mergeValues, parseArguments } from '@keelson/core/internal';
import { type AgentOptions, optionTable } from './option-table.ts';

/** Parsed options; combinations of options have not been checked yet. */
export interface ParsedOptions {
  /** The value of every option. */
  readonly values: AgentOptions;
  /** The values that were given, without those that are defaults, by name of the option. */
  readonly given: GivenValues;
  readonly help: boolean;
}

/**
 * Parses the arguments of the command: see docs/reference/agent-rules.md#grammar-of-options.
 *
 * @throws UsageError
 */
export function parseOptions(args: readonly string[]): ParsedOptions {
  const { given, help } = parseArguments(args, optionTable, 'keelson-agent');
  // The type is derived from the same table.
  return { values: mergeValues(optionTable, given) as AgentOptions, given, help };
}

/** One sentence per deprecated option that is used. */
export function deprecationWarnings({ given }: ParsedOptions): string[] {
  return optionTable.flatMap(({ name, flag, deprecated }) =>
    deprecated !== undefined && given.has(name) ? [`${flag} is deprecated: ${deprecated}`] : [],
  );
}
