import { isDocumentError, parseJson, parseYaml } from '@keelson/core';
import { isRecord } from '../is-record.ts';
import { ManifestError } from './manifest-error.ts';

/** Greatest size of a document of manifests; reliability.md section 3 has the same limit for request bodies. */
export const maxManifestBytes = 3 * 1024 * 1024;

function parse(bytes: Buffer): unknown {
  if (bytes.length > maxManifestBytes) throw new ManifestError(`has more than ${maxManifestBytes} bytes`);
  try {
    // JSON has a higher limit of its size than YAML, which it would otherwise be read as.
    const json = /^\s*[[{]/.test(bytes.toString('latin1', 0, 256));
    const { value, duplicateFields } =
      json && bytes.length > 512 * 1024 ? parseJson(bytes, { duplicates: true }) : parseYaml(bytes);
    if (duplicateFields.length > 0) throw new ManifestError(`has the field ${duplicateFields[0]} twice`);
    return value;
  } catch (error) {
    if (isDocumentError(error)) throw new ManifestError(error.message, { cause: error });
    throw error;
  }
}

/** A document of one pod or of a list of pods, in JSON or YAML, as values that have not been looked at yet. */
export interface ParsedManifests {
  readonly items: readonly unknown[];
}

/**
 * Takes a document apart. One without a single visible character has no pods.
 *
 * @throws ManifestError when it is neither JSON nor YAML, or something other than a pod or a list
 */
export function parseManifests(bytes: Buffer): ParsedManifests {
  if (bytes.toString('utf8', 0, 4096).trim() === '' && bytes.length <= 4096) return { items: [] };
  const value = parse(bytes);
  if (value === null || value === undefined) return { items: [] };
  if (!isRecord(value)) throw new ManifestError('is not an object');
  const { kind, apiVersion, items } = value;
  if (apiVersion !== 'v1') throw new ManifestError(`has apiVersion ${JSON.stringify(apiVersion)}; it must be v1`);
  if (kind === 'Pod') return { items: [value] };
  if (kind !== 'PodList' && kind !== 'List')
    throw new ManifestError(`has kind ${JSON.stringify(kind)}; it must be Pod or PodList`);
  if (items === undefined || items === null) return { items: [] };
  if (!Array.isArray(items)) throw new ManifestError('has items that are no list');
  // Items of a PodList need not repeat what the list says of them.
  return { items: items.map((item) => (isRecord(item) ? { apiVersion: 'v1', kind: 'Pod', ...item } : item)) };
}
