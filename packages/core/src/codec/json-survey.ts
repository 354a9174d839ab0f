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

/** What one pass over the bytes of a JSON document shows, without parsing it. Of invalid documents it means nothing. */
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

/** True for bytes that a number literal can contain. */
export function isNumberByte(byte: number): boolean {
  return (byte >= zero && byte <= nine) || byte === 0x2e || byte === 0x2b || byte === 0x2d || (byte | 0x20) === 0x65;
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
