import { fieldError } from '../meta/field-error.ts';
import type { NodeDecoder } from './decode-context.ts';
import type { NumberTraits, StringTraits } from './schema.ts';

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
  const { enum: words, minLength, maxLength } = traits;
  const pattern = traits.pattern === undefined ? undefined : new RegExp(traits.pattern, 'u');
  if (!words && !pattern && minLength === undefined && maxLength === undefined) return decodeString;
  const allowed = words && new Set(words);
  return (input, context, key) => {
    if (typeof input !== 'string') throw context.typeError(key, 'string', input);
    if (allowed && words && !allowed.has(input))
      context.report(fieldError.notSupported(context.path(key), input, words));
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
