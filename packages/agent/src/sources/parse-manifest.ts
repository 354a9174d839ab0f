import { isDocumentError, isJsonObject, parseJson, parseYaml } from '@keelson/core/internal';

/** An invalid manifest; the message names the problem in one line. */
export class ManifestError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ManifestError';
  }
}

/**
 * Maximum size of a manifest document; request bodies have the same limit. See
 * docs/reference/api-rules.md#limits-of-a-request.
 */
export const maxManifestBytes = 3 * 1024 * 1024;

function parse(bytes: Buffer): unknown {
  try {
    // JSON has a higher size limit than YAML, as which it would otherwise be parsed.
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

/** Pods of one or several documents in JSON or YAML, not validated yet. */
export interface ParsedManifests {
  readonly items: readonly unknown[];
  /** The rejected documents of several. */
  readonly problems: readonly DocumentProblem[];
}

export interface DocumentProblem {
  /** Counted from 1; line numbers in the message are relative to the document. */
  readonly document: number;
  readonly problem: string;
}

/**
 * Parses the pods and lists of pods of the YAML documents in a file, which lines of `---` separate. Documents without
 * content have no pods.
 *
 * @throws ManifestError when the only document is invalid: neither JSON nor YAML, or neither a pod nor a list
 */
export function parseManifests(bytes: Buffer): ParsedManifests {
  if (bytes.length > maxManifestBytes) throw new ManifestError(`has more than ${maxManifestBytes} bytes`);
  const documents = documentsOf(bytes);
  if (documents.length <= 1) return { items: documents.flatMap(itemsOf), problems: [] };
  const items: unknown[] = [];
  const problems: DocumentProblem[] = [];
  for (const [index, document] of documents.entries()) {
    try {
      for (const item of itemsOf(document)) items.push(item);
    } catch (error) {
      if (!(error instanceof ManifestError)) throw error;
      problems.push({ document: index + 1, problem: error.message });
    }
  }
  return { items, problems };
}

/** In YAML such a line can only occur between documents. */
const separator = /^---(?=[ \t\r\n]|$)/m;

/** More than any node runs; limits the work on a file that consists of separators. */
const maxDocuments = 1000;

function documentsOf(bytes: Buffer): Buffer[] {
  // One character per byte: the parser reports invalid UTF-8.
  const [first = '', ...others] = bytes.toString('latin1').split(separator);
  const documents = hasContent(first) ? [first, ...others] : others;
  if (documents.length > maxDocuments) throw new ManifestError(`has more than ${maxDocuments} documents`);
  // Errors name lines of the file where there is only one document.
  return documents.length <= 1 ? [bytes] : documents.map((text) => Buffer.from(text, 'latin1'));
}

/** False for comments and directives before the first separator. */
function hasContent(text: string): boolean {
  return text.split('\n').some((line) => !/^(?:\s*$|\s*#|%)/.test(line));
}

function itemsOf(bytes: Buffer): readonly unknown[] {
  if (bytes.toString('utf8', 0, 4096).trim() === '' && bytes.length <= 4096) return [];
  const value = parse(bytes);
  if (value === null || value === undefined) return [];
  if (!isJsonObject(value)) throw new ManifestError('is not an object');
  const { kind, apiVersion, items } = value;
  if (apiVersion !== 'v1') throw new ManifestError(`has apiVersion ${JSON.stringify(apiVersion)}; it must be v1`);
  if (kind === 'Pod') return [value];
  if (kind !== 'PodList' && kind !== 'List')
    throw new ManifestError(`has kind ${JSON.stringify(kind)}; it must be Pod or PodList`);
  if (items === undefined || items === null) return [];
  if (!Array.isArray(items)) throw new ManifestError('has items that are not a list');
  // Items of a PodList may omit apiVersion and kind.
  return items.map((item) => (isJsonObject(item) ? { apiVersion: 'v1', kind: 'Pod', ...item } : item));
}
