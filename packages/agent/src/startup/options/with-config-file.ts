import { UsageError } from '../../base/usage-error.ts';
import { parseConfigFile } from './config-file.ts';
import { resolveGates } from './feature-gates.ts';
import { optionTable } from './option-table.ts';
import type { ParsedOptions } from './parse-options.ts';

type Gates = ReadonlyMap<string, boolean>;

/**
 * Adds the values of a configuration file to those of the command line, which override them. Gates are merged, since
 * the gate that allows the file is on the command line.
 */
export function withFileValues(parsed: ParsedOptions, file: ReadonlyMap<string, unknown>): ParsedOptions {
  const { values, given, warnings } = parsed;
  const added = [...file].filter(([name]) => !given.has(name));
  const gates: Gates = new Map([
    ...((file.get('feature-gates') as Gates | undefined) ?? []),
    ...values['feature-gates'],
  ]);
  const deprecated = optionTable.flatMap((row) =>
    row.deprecated !== undefined && added.some(([name]) => name === row.name)
      ? [`--${row.name} is deprecated: ${row.deprecated}`]
      : [],
  );
  return {
    ...parsed,
    // Each value was parsed by the type of its option.
    values: { ...values, ...Object.fromEntries(added), 'feature-gates': gates } as ParsedOptions['values'],
    given: new Set([...given, ...added.map(([name]) => name)]),
    warnings: [...warnings, ...deprecated],
  };
}

/**
 * Reads the file of --config, if there is one.
 *
 * @throws UsageError without the gate, or for a file that cannot be used
 */
export function withConfigFile(parsed: ParsedOptions, readFile: ((path: string) => Buffer) | undefined): ParsedOptions {
  const path = parsed.values.config;
  if (path === '') return parsed;
  if (!resolveGates(parsed.values['feature-gates'])['AgentConfigFile']) {
    throw new UsageError('--config needs --feature-gates=AgentConfigFile=true');
  }
  if (readFile === undefined) throw new UsageError('--config is not supported here: files are not read');
  let bytes: Buffer;
  try {
    bytes = readFile(path);
  } catch (error) {
    throw new UsageError(`--config ${path} cannot be read: ${(error as Error).message}`);
  }
  return withFileValues(parsed, parseConfigFile(bytes, `--config ${path}`));
}
