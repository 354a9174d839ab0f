import { isUtf8 } from 'node:buffer';
import { randomUUID } from 'node:crypto';
import { DocumentError, type ParsedDocument, placeOf } from './document-error.ts';
import { isNumberByte, JsonScanner } from './json-scanner.ts';

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
    // Scans again for the position of the error, because the message of `JSON.parse` would quote the document.
    new JsonScanner(bytes).duplicateFields();
    if (error instanceof DocumentError) throw error;
    throw new DocumentError('json', 'syntax', `the document is not JSON: ${(error as Error).name}`);
  }
  // A parsed object has fewer members than the text when fields are repeated. Only then are their paths searched.
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

/** Maximum number of bigints in one body; parsing each one costs a microsecond. */
const maxBigInts = 20_000;

/** Prefix of the strings that represent integers beyond the range of numbers. It is random for each process. */
const marker = `int64-${randomUUID()}:`;
const printedMarker = new RegExp(`['"]?${marker}(-?[0-9]+)['"]?`, 'g');
const quotedMarker = new RegExp(`"${marker}(-?[0-9]+)"`, 'g');

/** What happens with numbers that have no exact value: `refuse` them, or `round` them as JavaScript does. */
type Inexact = 'refuse' | 'round';

/**
 * The value of valid JSON whose number literals may be longer than numbers can hold: integers of 64 bits beyond ±(2^53
 * - 1) become bigints. For documents with {@link JsonSurvey.longNumbers}, because it costs several times a
 * plain parse.
 *
 * @throws DocumentError `range`, naming the place, for an integer beyond 64 bits or a number that overflows;
 *   `tooLarge` for very many bigints.
 */
export function parseLongNumbers(bytes: Buffer, inexact: Inexact): unknown {
  const parts: string[] = [];
  let copied = 0;
  for (const span of longNumberSpans(bytes)) {
    const value = exactValue(bytes, span, inexact);
    if (typeof value !== 'bigint') continue;
    if (parts.length > 2 * maxBigInts && inexact === 'refuse') {
      throw new DocumentError('json', 'tooLarge', `the document has more than ${maxBigInts} integers beyond 2^53`);
    }
    parts.push(bytes.toString('utf8', copied, span.start), `"${marker}${value}"`);
    copied = span.end;
  }
  if (parts.length === 0) return JSON.parse(bytes.toString('utf8'));
  parts.push(bytes.toString('utf8', copied));
  return withBigInts(JSON.parse(parts.join('')));
}

function exactValue(bytes: Buffer, span: Span, inexact: Inexact): number | bigint {
  const text = bytes.toString('latin1', span.start, span.end);
  const isInteger = /^-?(?:0|[1-9][0-9]*)$/.test(text);
  const value = isInteger ? exactInteger(text) : Number(text);
  if (value !== undefined && (typeof value === 'bigint' || Number.isFinite(value))) return value;
  if (inexact === 'round') return Number(text);
  const what = isInteger ? 'an integer does not fit into 64 bits' : 'a number is too large for 64-bit floating point';
  throw new DocumentError('json', 'range', `${what} (${placeOf(bytes, span.start)})`);
}

function withBigInts(value: unknown): unknown {
  if (typeof value === 'string') return value.startsWith(marker) ? BigInt(value.slice(marker.length)) : value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) value[i] = withBigInts(value[i]);
    return value;
  }
  const object = value as Record<string, unknown>;
  for (const key of Object.keys(object)) {
    const before = object[key];
    const after = withBigInts(before);
    if (after !== before) setOwn(object, key, after);
  }
  return value;
}

/**
 * The beginning of an integer that numbers may not hold, or of a string that looks like one. Digits inside of strings,
 * such as digests in hexadecimal, seldom follow one of these characters, so that the search is short.
 */
const longInteger = /[:,[\s-][0-9]{16}/;
/**
 * JSON text that begins with a digit is a single number. `longInteger` does not match it: to allow the start of the
 * text (`^`) in that expression would make the search twice as slow.
 */
const isNumber = (text: string) => text >= '0' && text < ':';

/**
 * Parses JSON that this project has written. Integers of 64 bits beyond ±(2^53 - 1) become bigints.
 * @throws SyntaxError
 */
export function parseJsonText(text: string): unknown {
  return longInteger.test(text) || isNumber(text) ? parseLongNumbers(Buffer.from(text), 'round') : JSON.parse(text);
}

/**
 * `JSON.stringify` for values that may contain bigints, which become integer literals. `indent` has the same meaning.
 */
export function jsonText(value: unknown, indent?: number): string {
  try {
    return JSON.stringify(value, null, indent);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
  return JSON.stringify(value, markBigInts, indent).replaceAll(quotedMarker, '$1');
}

/**
 * A copy of a value in which strings replace the bigints, and a function that inserts the bigints into printed text.
 * Most values have none.
 */
export function withMarkedBigInts(value: unknown): {
  readonly marked: unknown;
  readonly restore: (printed: string) => string;
} {
  if (!hasBigInt(value)) return { marked: value, restore: (printed) => printed };
  return {
    marked: JSON.parse(JSON.stringify(value, markBigInts)),
    restore: (printed) => printed.replaceAll(printedMarker, '$1'),
  };
}

function hasBigInt(value: unknown): boolean {
  if (typeof value === 'bigint') return true;
  return typeof value === 'object' && value !== null && Object.values(value).some(hasBigInt);
}

function markBigInts(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? `${marker}${value}` : value;
}

const minInt64 = -(2n ** 63n);
const maxInt64 = 2n ** 63n - 1n;
/** `-9223372036854775808` */
const longestInt64 = 20;

/**
 * The value of an integer literal without loss: a number where it holds the integer exactly, a bigint for the other
 * integers of 64 bits. An integer beyond 64 bits is accepted in the form in which JavaScript prints a number
 * (`100000000000000000000`), because answers contain it so. `undefined` when no exact value exists.
 */
export function exactInteger(text: string): number | bigint | undefined {
  const value = Number(text);
  if (Number.isSafeInteger(value)) return value === 0 ? 0 : value;
  if (text.length <= longestInt64) {
    const exact = BigInt(text);
    if (exact >= minInt64 && exact <= maxInt64) return exact;
  }
  return String(value) === text ? value : undefined;
}

const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const comma = 0x2c;
const colon = 0x3a;
const zero = 0x30;
const nine = 0x39;

/** Literals with fewer digits than this are exact as numbers. */
const inexactDigits = 16;
/** Exponents with fewer digits than this do not overflow unless the literal has many digits itself. */
const longExponent = 3;

/**
 * The result of one pass over the bytes of a JSON document without parsing it. It has no meaning for an invalid
 * document.
 */
export interface JsonSurvey {
  /** Members (`"key":`) of all objects. */
  readonly members: number;
  /** About the number of values: members, list elements, objects and lists. */
  readonly values: number;
  /** Greatest nesting of objects and lists. */
  readonly depth: number;
  /** Some number literals may lose digits or overflow when they become numbers. */
  readonly longNumbers: boolean;
}

/** Inspects JSON bytes in one pass of about a millisecond per megabyte. */
export function surveyJson(bytes: Uint8Array): JsonSurvey {
  let members = 0;
  let values = 0;
  let depth = 0;
  let deepest = 0;
  let longNumbers = false;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number;
    if (byte === quote) i = stringEnd(bytes, i);
    else if (byte === colon) {
      members++;
      values++;
    } else if (byte === comma) values++;
    else if ((byte | 0x20) === openBrace) {
      // `[` and `{` differ in one bit only.
      values++;
      if (++depth > deepest) deepest = depth;
    } else if ((byte | 0x20) === closeBrace) depth--;
    else if (byte >= zero && byte <= nine) {
      const end = numberEnd(bytes, i);
      longNumbers ||= isLong(bytes, i, end);
      i = end - 1;
    }
  }
  return { members, values, depth: deepest, longNumbers };
}

/** A place in the bytes of a document. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Positions of the number literals that {@link JsonSurvey.longNumbers} counts. */
export function* longNumberSpans(bytes: Uint8Array): Generator<Span> {
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number;
    if (byte === quote) i = stringEnd(bytes, i);
    else if (byte >= zero && byte <= nine) {
      const end = numberEnd(bytes, i);
      if (isLong(bytes, i, end)) yield { start: bytes[i - 1] === 0x2d ? i - 1 : i, end };
      i = end - 1;
    }
  }
}

function isLong(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start >= inexactDigits) return true;
  if (end - start <= longExponent) return false;
  for (let i = start; i < end; i++) {
    if (((bytes[i] as number) | 0x20) === 0x65) return end - i > longExponent;
  }
  return false;
}

function numberEnd(bytes: Uint8Array, start: number): number {
  let i = start + 1;
  while (i < bytes.length && isNumberByte(bytes[i] as number)) i++;
  return i;
}

/** Index of the quote that ends the string starting at `start`; the end of the bytes when there is none. */
function stringEnd(bytes: Uint8Array, start: number): number {
  let i = start + 1;
  while (i < bytes.length) {
    const byte = bytes[i];
    if (byte === quote) return i;
    i += byte === backslash ? 2 : 1;
  }
  return bytes.length;
}

/** A JSON object. Keys such as `__proto__` are data like any other. */
export type JsonObject = Record<string, unknown>;

/** True for objects; false for arrays, null and scalars. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The object that a text of a trusted size contains; undefined for any other text. */
export function parseJsonObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Sets a plain own property whatever its name is. Assigning `__proto__` would change the object's prototype
 * instead, and it is a legal key of labels, data and every other map.
 */
export function setOwn(target: Record<string, unknown>, name: string, value: unknown): void {
  if (name === '__proto__') {
    Object.defineProperty(target, name, { value, enumerable: true, writable: true, configurable: true });
  } else {
    target[name] = value;
  }
}

/** The own property, or undefined; prototypes are not searched. */
export function getOwn(object: JsonObject, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** A private copy of a JSON value; several times cheaper than `structuredClone`, which also copies other types. */
export function copyJson<T>(value: T): T {
  if (Array.isArray(value)) return value.map(copyJson) as T;
  if (!isJsonObject(value)) return value;
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value)) setOwn(copy, key, copyJson(value[key]));
  return copy as T;
}

/**
 * True when two values have the same JSON text apart from the order of object keys; `undefined` members count as
 * absent.
 */
export function equalJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    for (let i = 0; i < a.length; i += 1) if (!equalJson(a[i], b[i])) return false;
    return true;
  }
  if (!isJsonObject(a) || !isJsonObject(b)) return false;
  // `Object.keys` would be the larger part of the cost of a comparison.
  let onlyInB = 0;
  for (const key in b) if (b[key] !== undefined) onlyInB += 1;
  for (const key in a) {
    if (a[key] === undefined) continue;
    if (!Object.hasOwn(b, key) || !equalJson(a[key], b[key])) return false;
    onlyInB -= 1;
  }
  return onlyInB === 0;
}
