import { randomUUID } from 'node:crypto';
import { setOwn } from '../kind/decode-value.ts';
import { DocumentError, placeOf } from './document-error.ts';
import { longNumberSpans, type Span } from './json-survey.ts';

/** Integers of one body that only bigints hold; each costs a microsecond. */
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

/** Digits in a row from which on a text may contain integers that numbers do not hold. */
const manyDigits = /[0-9]{16}/;

/**
 * Parses JSON that this project has written. Integers of 64 bits beyond ±(2^53 - 1) become bigints.
 * @throws SyntaxError
 */
export function parseJsonText(text: string): unknown {
  return manyDigits.test(text) ? parseLongNumbers(Buffer.from(text), 'round') : JSON.parse(text);
}

/** `JSON.stringify` for values that may hold bigints, which become integer literals. `indent` as there. */
export function jsonText(value: unknown, indent?: number): string {
  try {
    return JSON.stringify(value, null, indent);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
  return JSON.stringify(value, markBigInts, indent).replaceAll(quotedMarker, '$1');
}

/**
 * A copy of a value in which texts stand for bigints, and how to put these into what a printer has made of it. Most
 * values have none.
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
