import { isUtf8 } from 'node:buffer';
import { DocumentError, type ParsedDocument } from './document-error.ts';
import { parseLongNumbers } from './json-numbers.ts';
import { JsonScanner } from './json-scanner.ts';
import { surveyJson } from './json-survey.ts';

/** Maximum nesting of objects and lists in a JSON body: see docs/reference/api-rules.md#limits-of-a-request. */
export const maxJsonDepth = 200;

/**
 * Greatest number of values in a JSON or protobuf body: members, list elements, objects and lists. It bounds how long
 * one body occupies the event loop; docs/adr/0030 has the measurements.
 */
export const maxJsonValues = 150_000;

const none: readonly string[] = [];

/**
 * Parses a JSON body. With `duplicates`, fields that repeat in their object are reported (the last one counts). A field
 * named `__proto__` becomes an own property like any other; code that copies parsed objects by assignment must take
 * that into account. Integers of 64 bits that numbers do not hold exactly become bigints.
 *
 * @throws DocumentError for anything that is not one JSON value in UTF-8 of at most {@link maxJsonDepth} levels and
 *   {@link maxJsonValues} values, and for numbers that have no exact value.
 */
export function parseJson(bytes: Buffer, options: { readonly duplicates?: boolean } = {}): ParsedDocument {
  if (!isUtf8(bytes)) throw new DocumentError('json', 'encoding', 'the document is not valid UTF-8');
  const { depth, members, values, longNumbers } = surveyJson(bytes);
  if (depth > maxJsonDepth) {
    throw new DocumentError('json', 'tooDeep', `the document is nested deeper than ${maxJsonDepth} levels`);
  }
  if (values > maxJsonValues) {
    throw new DocumentError('json', 'tooLarge', `the document has more than ${maxJsonValues} values`);
  }
  let value: unknown;
  try {
    value = longNumbers ? parseLongNumbers(bytes, 'refuse') : JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    // Finds the place; the engine's own message would quote the document.
    new JsonScanner(bytes).duplicateFields();
    if (error instanceof DocumentError) throw error;
    throw new DocumentError('json', 'syntax', `the document is not JSON: ${(error as Error).name}`);
  }
  // Objects hold as many members as the text has unless some were repeated, so the exact search is rarely needed.
  const suspicious = options.duplicates === true && membersOf(value) !== members;
  return { value, duplicateFields: suspicious ? new JsonScanner(bytes).duplicateFields() : none };
}

/** Number of members in a value and all that it contains. */
function membersOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  let members = 0;
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === 'object') members += membersOf(item);
    return members;
  }
  const object = value as Record<string, unknown>;
  for (const key of Object.keys(object)) {
    members++;
    const item = object[key];
    if (typeof item === 'object') members += membersOf(item);
  }
  return members;
}
