import { isDocumentError, parseYaml } from '@keelson/core/internal';
import { isRecord } from '../../base/json-values.ts';
import { UsageError } from '../../base/usage-error.ts';
import { fieldName, textsOf } from './file-value.ts';
import { nearestWord } from './nearest-word.ts';
import type { AnyOption } from './option.ts';
import { optionTable } from './option-table.ts';
import { ValueError } from './value-type.ts';

/** The type of a configuration file. */
export const configFileVersion = { apiVersion: 'agentconfig/v1alpha1', kind: 'AgentConfiguration' } as const;

/** Options that only the command line accepts. */
const notInFiles = new Set(['config', 'version']);

const byField: ReadonlyMap<string, AnyOption> = new Map(
  optionTable.filter(({ name }) => !notInFiles.has(name)).map((row) => [fieldName(row.name), row]),
);

function parseDocument(bytes: Buffer, source: string): Record<string, unknown> {
  let parsed: ReturnType<typeof parseYaml>;
  try {
    parsed = parseYaml(bytes);
  } catch (error) {
    if (isDocumentError(error)) throw new UsageError(`${source} cannot be read as YAML or JSON: ${error.message}`);
    throw error;
  }
  const [twice] = parsed.duplicateFields;
  if (twice !== undefined) throw new UsageError(`${source} contains ${twice} twice`);
  if (!isRecord(parsed.value)) throw new UsageError(`${source} must contain an object`);
  return parsed.value;
}

function checkVersion(document: Record<string, unknown>, source: string): void {
  for (const [field, expected] of Object.entries(configFileVersion)) {
    if (document[field] === expected) continue;
    const found = document[field] === undefined ? 'it is missing' : `not ${JSON.stringify(document[field])}`;
    throw new UsageError(`${source}: ${field} must be ${expected}, ${found}`);
  }
}

function optionOf(field: string, source: string): AnyOption {
  const row = byField.get(field);
  if (row !== undefined) return row;
  const near = nearestWord(field, [...byField.keys()]);
  throw new UsageError(`${source}: unknown field ${field}${near === undefined ? '' : ` (did you mean ${near}?)`}`);
}

/**
 * Parses a configuration file. Fields are the names of options in camel case; values follow the rules of the command
 * line.
 *
 * @param source the name of the file in messages
 * @returns values by option name
 * @throws UsageError
 */
export function parseConfigFile(bytes: Buffer, source: string): ReadonlyMap<string, unknown> {
  const { apiVersion, kind, ...fields } = parseDocument(bytes, source);
  checkVersion({ apiVersion, kind }, source);
  const values = new Map<string, unknown>();
  for (const [field, raw] of Object.entries(fields)) {
    const row = optionOf(field, source);
    try {
      let value: unknown;
      for (const text of textsOf(row, raw)) value = row.type.parse(text, value);
      values.set(row.name, value);
    } catch (error) {
      if (error instanceof ValueError) throw new UsageError(`${source}: ${field} ${error.message}`);
      throw error;
    }
  }
  return values;
}
