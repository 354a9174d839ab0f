import { readFile } from 'node:fs/promises';
import type { Schema } from '@keelson/core';
import { decoderOf, isDecodeTypeError, isDocumentError, parseYaml, UsageError } from '@keelson/core/internal';

/** The API version and kind that a config file must have. */
export interface ConfigType<T> {
  /** The accepted versions, the preferred one first. */
  readonly apiVersion: string | readonly string[];
  readonly kind: string;
  readonly schema: Schema<T>;
}

/**
 * Parses a YAML or JSON file with `apiVersion` and `kind`. Unknown and repeated fields are errors.
 *
 * @param source option and path, for messages, which never contain values of the file
 * @throws UsageError
 */
export function parseConfig<T>(bytes: Buffer, { apiVersion, kind, schema }: ConfigType<T>, source: string): T {
  let document: ReturnType<typeof parseYaml>;
  try {
    document = parseYaml(bytes);
  } catch (error) {
    if (isDocumentError(error)) throw new UsageError(`${source} is not valid YAML: ${error.message}`);
    throw error;
  }
  const value = document.value as Partial<Record<'apiVersion' | 'kind', unknown>> | null;
  const versions: readonly unknown[] = [apiVersion].flat();
  if (typeof value !== 'object' || value === null || !versions.includes(value.apiVersion) || value.kind !== kind)
    throw new UsageError(`${source} must contain an object with apiVersion: ${versions[0]} and kind: ${kind}`);
  if (document.duplicateFields[0] !== undefined)
    throw new UsageError(`${source} contains the field ${document.duplicateFields[0]} twice`);
  try {
    const { value: decoded, errors, unknownFields } = decoderOf(schema)(value);
    if (unknownFields[0] !== undefined) throw new UsageError(`${source} has an unknown field ${unknownFields[0]}`);
    if (errors[0] !== undefined) throw new UsageError(`${source}: ${errors[0].field}: ${errors[0].message}`);
    return decoded;
  } catch (error) {
    if (isDecodeTypeError(error)) throw new UsageError(`${source}: ${error.path} must be ${error.expected}`);
    throw error;
  }
}

/** @throws UsageError when the file cannot be read */
export async function readConfigFile(path: string, option: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    throw new UsageError(`${option} ${path} cannot be read: ${(error as Error).message}`);
  }
}
