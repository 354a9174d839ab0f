import { canonicalBase64 } from '../meta/base64.ts';
import { cutText } from '../meta/cut-text.ts';
import { formatDuration, parseDuration } from '../meta/duration.ts';
import { type FieldError, fieldError, isFull, maxListedErrors } from '../meta/field-error.ts';
import { canonicalQuantity } from '../meta/quantity.ts';
import { formatInstant, formatMicroInstant, type Instant, isZeroInstant, parseInstant } from '../meta/time.ts';
import type { NumberTraits, StringTraits } from './schema.ts';

const brand = Symbol.for('keelson.DecodeTypeError');

/** A JSON value of a type that its field cannot have. The transport answers 400. */
export class DecodeTypeError extends Error {
  /** Path of the value in JavaScript notation; '' for the whole document. */
  readonly path: string;
  readonly expected: string;
  readonly got: string;
  readonly [brand] = true;

  constructor(path: string, expected: string, got: string) {
    super(`${path === '' ? 'the document' : path}: expected ${expected}, got ${got}`);
    this.name = 'DecodeTypeError';
    this.path = path;
    this.expected = expected;
    this.got = got;
  }
}

/** True for a {@link DecodeTypeError}, also across two copies of this package. */
export function isDecodeTypeError(error: unknown): error is DecodeTypeError {
  return typeof error === 'object' && error !== null && brand in error;
}

/** Decodes one value; `key` is the field name, list index or map key under which it stands. */
export type NodeDecoder = (input: unknown, context: DecodeContext, key: string | number) => unknown;

/** A field of a message as its decoder needs it. */
export interface Slot {
  readonly name: string;
  /** Position in the canonical order. */
  readonly index: number;
  readonly decode: NodeDecoder;
  /** A scalar that means the same as no value. */
  readonly absentValue?: '' | 0 | false;
  /** An empty list or map means the same as no value. */
  readonly emptyIsAbsent?: 'list' | 'map';
  /** Creates the value of an absent field, which remains absent when the result is `undefined`. */
  readonly whenAbsent?: (context: DecodeContext) => unknown;
}

/** Keys are cut to this length in paths. */
const maxKeyLength = 256;
/** Paths are cut to about this length. */
const maxPathLength = 1024;

function describe(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value === 'number' || typeof value === 'bigint') return `number ${value}`;
  return Array.isArray(value) ? 'array' : typeof value;
}

/**
 * State of one decoding run. The path of the current value is kept as a stack of keys, which becomes a text only for an
 * error.
 */
export class DecodeContext {
  readonly #keys: (string | number)[] = [];
  readonly #inMap: boolean[] = [];
  #depth = 0;
  /** See JsonSchemaForm. */
  readonly keepNulls: boolean;
  readonly errors: FieldError[] = [];
  readonly unknownFields: string[] = [];
  /** Scratch stack of message decoders: the fields present, in input order. Entries from `top` on are not in use. */
  readonly slots: Slot[] = [];
  top = 0;

  constructor(keepNulls = false) {
    this.keepNulls = keepNulls;
  }

  /** Enters the message, list or map under `key`. */
  enter(key: string | number, isMap: boolean): void {
    this.#keys[this.#depth] = key;
    this.#inMap[this.#depth] = isMap;
    this.#depth += 1;
  }

  leave(): void {
    this.#depth -= 1;
  }

  /** Path of the value with this `key` in the value that was entered last. */
  path(key: string | number): string {
    let text = '';
    for (let level = 0; level <= this.#depth; level += 1) {
      if (text.length > maxPathLength) return `${text}...`;
      const step = level === this.#depth ? key : (this.#keys[level] ?? '');
      const below = level > 0 && this.#inMap[level - 1] === true;
      if (typeof step === 'number') text += `[${step}]`;
      else if (below) text += `[${cutText(step, maxKeyLength)}]`;
      else if (step !== '' || level > 0) text += `${text === '' ? '' : '.'}${cutText(step, maxKeyLength)}`;
    }
    return text;
  }

  report(error: FieldError): void {
    if (!isFull(this.errors)) this.errors.push(error);
  }

  unknown(key: string): void {
    if (this.unknownFields.length < maxListedErrors) this.unknownFields.push(this.path(key));
  }

  unknownPath(path: string): void {
    if (this.unknownFields.length < maxListedErrors) this.unknownFields.push(path);
  }

  typeError(key: string | number, expected: string, input: unknown): DecodeTypeError {
    return new DecodeTypeError(this.path(key), expected, describe(input));
  }
}

const decodeString: NodeDecoder = (input, context, key) => {
  if (typeof input !== 'string') throw context.typeError(key, 'string', input);
  return input;
};

/** Length in characters as JSON Schema counts them: code points. */
function characters(text: string): number {
  let count = text.length;
  for (let index = 0; index < text.length - 1; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit < 0xd800 || unit > 0xdbff) continue;
    const next = text.charCodeAt(index + 1);
    if (next >= 0xdc00 && next <= 0xdfff) count -= 1;
  }
  return count;
}

/** Decoder of strings with their traits. */
export function stringDecoder(traits: StringTraits): NodeDecoder {
  const { enum: values, minLength, maxLength } = traits;
  const pattern = traits.pattern === undefined ? undefined : new RegExp(traits.pattern, 'u');
  if (!values && !pattern && minLength === undefined && maxLength === undefined) return decodeString;
  const allowed = values && new Set(values);
  return (input, context, key) => {
    if (typeof input !== 'string') throw context.typeError(key, 'string', input);
    if (allowed && values && !allowed.has(input))
      context.report(fieldError.notSupported(context.path(key), input, values));
    if (maxLength !== undefined && input.length > maxLength && characters(input) > maxLength) {
      context.report(fieldError.tooLong(context.path(key), maxLength));
    } else if (minLength !== undefined && (input.length < minLength || characters(input) < minLength)) {
      context.report(fieldError.invalid(context.path(key), input, `must have at least ${minLength} characters`));
    } else if (pattern && !pattern.test(input)) {
      context.report(
        fieldError.invalid(context.path(key), input, `must match the regular expression '${pattern.source}'`),
      );
    }
    return input;
  };
}

type NumberForm = { readonly expected: string; readonly fits: (value: number | bigint) => boolean };

const minInt64 = -(2n ** 63n);
const maxInt64 = 2n ** 63n - 1n;

function isInt32(value: number | bigint): boolean {
  return typeof value === 'number' && (value | 0) === value;
}

/** Integers that numbers do not hold exactly are bigints. */
function isInt64(value: number | bigint): boolean {
  return typeof value === 'number' ? Number.isSafeInteger(value) : value >= minInt64 && value <= maxInt64;
}

const numberForms: Readonly<Record<'int32' | 'int64' | 'double', NumberForm>> = {
  int32: { expected: 'integer of 32 bits', fits: isInt32 },
  int64: { expected: 'integer of 64 bits', fits: isInt64 },
  double: { expected: 'number', fits: (value) => Number.isFinite(Number(value)) },
};

/** Decoder of numbers with their bounds. */
export function numberDecoder(type: 'int32' | 'int64' | 'double', traits: NumberTraits): NodeDecoder {
  const { expected, fits } = numberForms[type];
  const { minimum, maximum } = traits;
  return (input, context, key) => {
    if ((typeof input !== 'number' && typeof input !== 'bigint') || !fits(input))
      throw context.typeError(key, expected, input);
    if (minimum !== undefined && input < minimum) {
      context.report(fieldError.invalid(context.path(key), input, `must be greater than or equal to ${minimum}`));
    } else if (maximum !== undefined && input > maximum) {
      context.report(fieldError.invalid(context.path(key), input, `must be less than or equal to ${maximum}`));
    }
    if (typeof input === 'bigint')
      return type === 'double' || Number.isSafeInteger(Number(input)) ? Number(input) : input;
    return input === 0 ? 0 : input;
  };
}

export const decodeBool: NodeDecoder = (input, context, key) => {
  if (typeof input !== 'boolean') throw context.typeError(key, 'boolean', input);
  return input;
};

/**
 * Decoder of instants: any RFC 3339 text becomes UTC, and the instant that Go servers use for "not set" becomes null.
 * `canonicalForm` matches the valid instants that are canonical already, as nearly all are.
 */
function instantDecoder(canonicalForm: (text: string) => boolean, format: (instant: Instant) => string): NodeDecoder {
  return (input, context, key) => {
    if (typeof input !== 'string') throw context.typeError(key, 'string (RFC 3339 time)', input);
    const instant = parseInstant(input);
    if (instant) {
      if (isZeroInstant(instant)) return null;
      return canonicalForm(input) ? input : format(instant);
    }
    context.report(fieldError.invalid(context.path(key), input, 'must be an RFC 3339 time, e.g. 2006-01-02T15:04:05Z'));
    return input;
  };
}

export const decodeTime: NodeDecoder = instantDecoder(
  (text) => text.length === 20 && text.endsWith('Z'),
  formatInstant,
);
export const decodeMicroTime: NodeDecoder = instantDecoder(
  (text) => text.length === 27 && text.endsWith('Z') && text[19] === '.',
  formatMicroInstant,
);

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export const decodeDuration: NodeDecoder = (input, context, key) => {
  if (typeof input !== 'string') throw context.typeError(key, 'string (duration)', input);
  try {
    return formatDuration(parseDuration(input));
  } catch (error) {
    context.report(fieldError.invalid(context.path(key), input, messageOf(error)));
    return input;
  }
};

/** Numbers are quantities too: `cpu: 2` in a manifest is one. */
export const decodeQuantity: NodeDecoder = (input, context, key) => {
  if (typeof input !== 'string' && typeof input !== 'number' && typeof input !== 'bigint') {
    throw context.typeError(key, 'quantity', input);
  }
  const text = typeof input === 'string' ? input.trim() : String(input);
  try {
    return canonicalQuantity(text);
  } catch (error) {
    context.report(fieldError.invalid(context.path(key), input, messageOf(error)));
    return text;
  }
};

export const decodeBytes: NodeDecoder = (input, context, key) => {
  if (typeof input !== 'string') throw context.typeError(key, 'string (base64)', input);
  const canonical = canonicalBase64(input);
  if (canonical === undefined) throw new DecodeTypeError(context.path(key), 'base64', 'text that is not base64');
  return canonical;
};

export const decodeIntOrString: NodeDecoder = (input, context, key) => {
  if (typeof input === 'string') return input;
  if (typeof input !== 'number' || (input | 0) !== input) {
    throw context.typeError(key, 'string or integer of 32 bits', input);
  }
  return input === 0 ? 0 : input;
};

/** Decodes an object of any content, which is returned unchanged. */
export const decodeRaw: NodeDecoder = (input, context, key) => {
  if (typeof input !== 'object' || input === null || Array.isArray(input))
    throw context.typeError(key, 'object', input);
  return input;
};

/** Decodes a value of any type, which is returned unchanged. */
export const decodeAny: NodeDecoder = (input) => input;
