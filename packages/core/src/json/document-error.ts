import { cutText } from '../meta/cut-text.ts';

/**
 * Why bytes are not a document.
 *
 * - `syntax`: not JSON or YAML, or YAML beyond what a resource needs (tags, merge keys, several documents).
 * - `encoding`: not UTF-8.
 * - `range`: a number has no exact value here.
 * - `tooDeep`, `tooLarge`: over a limit: see docs/reference/api-rules.md#limits-of-a-request.
 */
export type DocumentErrorReason = 'syntax' | 'encoding' | 'range' | 'tooDeep' | 'tooLarge';

const brand = Symbol.for('keelson.DocumentError');

/** A body that cannot be read. Messages name places, never content, which may be secret. */
export class DocumentError extends Error {
  readonly format: 'json' | 'yaml' | 'protobuf';
  readonly reason: DocumentErrorReason;
  readonly [brand] = true;

  constructor(format: 'json' | 'yaml' | 'protobuf', reason: DocumentErrorReason, message: string) {
    super(message);
    this.name = 'DocumentError';
    this.format = format;
    this.reason = reason;
  }
}

/** True for a {@link DocumentError}, also across two copies of this package. */
export function isDocumentError(error: unknown): error is DocumentError {
  return typeof error === 'object' && error !== null && brand in error;
}

/** A parsed request body. */
export interface ParsedDocument {
  readonly value: unknown;
  /**
   * Paths (`spec.ports[0].name`) of fields that appear again in the same object, the first hundred; the last one
   * counts. Empty unless the caller requested them.
   */
  readonly duplicateFields: readonly string[];
  /** The duplicate fields of a YAML document, as Kubernetes reports them: `line 9: key "name" already set in map`. */
  readonly repeatedKeys?: readonly string[];
}

/** `line 3, column 7` of an offset into text or bytes; both count from 1. */
export function placeOf(
  source: {
    readonly length: number;
    lastIndexOf(text: string, from: number): number;
    indexOf(text: string, from: number): number;
  },
  offset: number,
): string {
  let line = 1;
  for (let at = source.indexOf('\n', 0); at !== -1 && at < offset; at = source.indexOf('\n', at + 1)) line++;
  const lineStart = offset === 0 ? -1 : source.lastIndexOf('\n', offset - 1);
  return `line ${line}, column ${offset - lineStart}`;
}

/**
 * Maximum number of duplicate fields that are reported. A report repeats the path of the field, so its length is
 * limited too.
 */
const maxDuplicates = 100;
const maxKeyLength = 256;
const maxPathLength = 1024;

/** Notes that the field at these steps is repeated. */
export function noteDuplicate(duplicates: string[], steps: readonly (string | number)[]): void {
  if (duplicates.length < maxDuplicates) duplicates.push(pathText(steps));
}

/** Notes that a key of a YAML document is repeated at this offset. */
export function noteRepeatedKey(repeated: string[], key: string, source: string, offset: number): void {
  if (repeated.length >= maxDuplicates) return;
  const [line] = placeOf(source, offset).split(',');
  repeated.push(`${line}: key ${JSON.stringify(cutText(key, maxKeyLength))} already set in map`);
}

/** Path of a field from its steps: keys and list indices. Long keys and paths are cut. */
export function pathText(steps: readonly (string | number)[]): string {
  let text = '';
  for (const step of steps) {
    if (text.length > maxPathLength) return `${text}...`;
    if (typeof step === 'number') text += `[${step}]`;
    else text += `${text === '' ? '' : '.'}${cutText(step, maxKeyLength)}`;
  }
  return text;
}
