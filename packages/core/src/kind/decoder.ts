import type { FieldError } from '../meta/field-error.ts';
import { compileNode } from './decode-compile.ts';
import { DecodeContext } from './decode-context.ts';
import type { Schema } from './schema.ts';

export { DecodeTypeError, isDecodeTypeError } from './decode-context.ts';

/** What decoding a JSON value gave. */
export interface Decoded<T> {
  /**
   * A new value in canonical form: fields in schema order, defaults and zero values filled in, instants, durations,
   * quantities and base64 normalised, unknown fields gone. Meaningful only when there are no errors. What lies in
   * `raw` and `any` fields is shared with the input.
   */
  readonly value: T;
  /** Paths of fields the schema does not know, the first hundred of them. */
  readonly unknownFields: readonly string[];
  /** What the transport answers with 422, the first hundred of them. */
  readonly errors: readonly FieldError[];
}

/** Turns a JSON value into a canonical one. Throws `DecodeTypeError` for values of the wrong JSON type. */
export type Decoder<T> = (input: unknown) => Decoded<T>;

const decoders = new WeakMap<Schema<unknown>['node'], Decoder<unknown>>();

/**
 * The decoder of a schema; compiled on first use and kept as long as the schema. Decoding is pure: the input is
 * never changed, and `decode(decode(x).value)` gives the same value again.
 *
 * `null` for a field means that it is absent. So does `""` where the field takes one of a closed set of words.
 * There is no other leniency: a string where a number belongs is a type error.
 *
 * @throws Error when a static default does not fit its own field, or a pattern is no regular expression.
 */
export function decoderOf<T>(schema: Schema<T>): Decoder<T> {
  const known = decoders.get(schema.node);
  if (known) return known as Decoder<T>;
  const decode = compileNode(schema.node);
  const decoder: Decoder<T> = (input) => {
    const context = new DecodeContext();
    const value = decode(input, context, '') as T;
    return { value, unknownFields: context.unknownFields, errors: context.errors };
  };
  decoders.set(schema.node, decoder);
  return decoder;
}
