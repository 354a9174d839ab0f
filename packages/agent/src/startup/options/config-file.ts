import { dirname } from 'node:path';
import { type GivenValues, mergeValues, parseConfigDocument, parseFields, UsageError } from '@keelson/core/internal';
import { resolveGates } from './feature-gates.ts';
import { type AgentOptions, optionTable } from './option-table.ts';
import type { ParsedOptions } from './parse-options.ts';

/** The type of a configuration file. */
export const configFileVersion = { apiVersion: 'agentconfig/v1alpha1', kind: 'AgentConfiguration' } as const;

/**
 * Parses a configuration file. Fields are the names of options in camel case.
 *
 * @param source the name of the file in messages
 * @throws UsageError
 */
export function parseConfigFile(bytes: Buffer, source: string): GivenValues {
  const { apiVersion, kind, ...fields } = parseConfigDocument(bytes, source);
  const version: Readonly<Record<string, unknown>> = { apiVersion, kind };
  for (const [field, expected] of Object.entries(configFileVersion)) {
    if (version[field] === expected) continue;
    const found = version[field] === undefined ? 'it is missing' : `not ${JSON.stringify(version[field])}`;
    throw new UsageError(`${source}: ${field} must be ${expected}, ${found}`);
  }
  return parseFields(fields, optionTable, source, dirname(source));
}

type Gates = ReadonlyMap<string, boolean>;

/**
 * Adds the values of a configuration file to those of the command line, which override them. Gates are merged, since
 * the gate that allows the file is on the command line.
 */
export function withFileValues({ given, help }: ParsedOptions, file: GivenValues): ParsedOptions {
  const gatesOf = (source: GivenValues) => (source.get('feature-gates') as Gates | undefined) ?? [];
  const gates: Gates = new Map([...gatesOf(file), ...gatesOf(given)]);
  const merged = new Map([...file, ...given, ['feature-gates', gates]]);
  // Each value was parsed by the type of its option.
  return { values: mergeValues(optionTable, merged) as AgentOptions, given: merged, help };
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
