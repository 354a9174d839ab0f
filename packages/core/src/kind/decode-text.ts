import { canonicalBase64 } from '../meta/base64.ts';
import { formatDuration, parseDuration } from '../meta/duration.ts';
import { fieldError } from '../meta/field-error.ts';
import { canonicalQuantity } from '../meta/quantity.ts';
import { formatInstant, formatMicroInstant, type Instant, isZeroInstant, parseInstant } from '../meta/time.ts';
import { DecodeTypeError, type NodeDecoder } from './decode-context.ts';

/**
 * Decoder of instants: any RFC 3339 text comes out in UTC; the instant Go servers take for "not set" as null.
 * `canonicalForm` recognises, among valid instants, those that are written as they come out: nearly all of them.
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

/** Any object, as it is. */
export const decodeRaw: NodeDecoder = (input, context, key) => {
  if (typeof input !== 'object' || input === null || Array.isArray(input))
    throw context.typeError(key, 'object', input);
  return input;
};

/** Any value, as it is. */
export const decodeAny: NodeDecoder = (input) => input;
