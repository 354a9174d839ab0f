import { cutText } from '../meta/cut-text.ts';
import type { FieldError } from '../meta/field-error.ts';
import { isFull, maxListedErrors } from '../meta/field-errors.ts';

const brand = Symbol.for('keelson.DecodeTypeError');

/** A JSON value of a type that its field cannot have. The transport answers 400. */
export class DecodeTypeError extends Error {
  /** Where, in JavaScript notation; '' for the whole document. */
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
  /** True where `""` means the same as no value: closed sets of words that do not hold it. */
  readonly emptyIsAbsent: boolean;
  /** What stands in for an absent value; `undefined` results stay away. Absent = nothing to do. */
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
 * State of one decoding run. The way to the current value is kept as a stack of keys; text is made of it only
 * when something is found.
 */
export class DecodeContext {
  readonly #keys: (string | number)[] = [];
  readonly #inMap: boolean[] = [];
  #depth = 0;
  readonly errors: FieldError[] = [];
  readonly unknownFields: string[] = [];
  /**
   * Scratch stack of message decoders: the fields present, in input order. What lies at `top` and beyond is left over.
   */
  readonly slots: Slot[] = [];
  top = 0;

  /** Goes down into a message, list or map that stands under `key`. */
  enter(key: string | number, isMap: boolean): void {
    this.#keys[this.#depth] = key;
    this.#inMap[this.#depth] = isMap;
    this.#depth += 1;
  }

  leave(): void {
    this.#depth -= 1;
  }

  /** Path of the value that stands under `key` in what was entered last. */
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

  typeError(key: string | number, expected: string, input: unknown): DecodeTypeError {
    return new DecodeTypeError(this.path(key), expected, describe(input));
  }
}
