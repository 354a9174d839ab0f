import { isUtf8 } from 'node:buffer';
import { DocumentError, type ParsedDocument } from './document-error.ts';
import { countMembers, isDeeperThan, JsonScanner } from './json-scanner.ts';

/** Greatest nesting of objects and lists in a JSON body; reliability.md section 3. */
export const maxJsonDepth = 200;

const none: readonly string[] = [];

/** Documents up to this size are parsed before their nesting is looked at, which spares a pass over the bytes: 1.4 µs a kilobyte. */
const parsedAtOnce = 64 * 1024;

const tooDeep = () => new DocumentError('json', 'tooDeep', `the document is nested deeper than ${maxJsonDepth} levels`);

/**
 * Parses a JSON body. With `duplicates`, fields that repeat in their object are reported (the last one counts). A field named
 * `__proto__` becomes an own property like any other; whoever copies parsed objects by assignment must mind that.
 *
 * @throws DocumentError for anything that is not one JSON value in UTF-8 of at most {@link maxJsonDepth} levels.
 */
export function parseJson(bytes: Buffer, options: { readonly duplicates?: boolean } = {}): ParsedDocument {
  if (!isUtf8(bytes)) throw new DocumentError('json', 'encoding', 'the document is not valid UTF-8');
  if (bytes.length > parsedAtOnce && isDeeperThan(bytes, maxJsonDepth)) throw tooDeep();
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    if (isDeeperThan(bytes, maxJsonDepth)) throw tooDeep();
    // Finds the place; the engine's own message would quote the document.
    new JsonScanner(bytes).duplicateFields();
    throw new DocumentError('json', 'syntax', `the document is not JSON: ${(error as Error).name}`);
  }
  const members = membersOf(value, maxJsonDepth);
  // Objects hold as many members as the text has unless some were repeated, so the exact search is rarely needed.
  const suspicious = options.duplicates === true && members !== countMembers(bytes);
  return { value, duplicateFields: suspicious ? new JsonScanner(bytes).duplicateFields() : none };
}

/** Number of members in a value and all that lies in it. @throws DocumentError when it has more than `levels` levels. */
function membersOf(value: unknown, levels: number): number {
  if (typeof value !== 'object' || value === null) return 0;
  if (levels === 0) throw tooDeep();
  let members = 0;
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === 'object') members += membersOf(item, levels - 1);
    return members;
  }
  const object = value as Record<string, unknown>;
  for (const key of Object.keys(object)) {
    members++;
    const item = object[key];
    if (typeof item === 'object') members += membersOf(item, levels - 1);
  }
  return members;
}
