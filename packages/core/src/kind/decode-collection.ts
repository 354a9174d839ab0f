import { fieldError } from '../meta/field-error.ts';
import type { NodeDecoder } from './decode-context.ts';
import type { ListTraits } from './schema.ts';
import { setOwn } from './set-own.ts';

/** Decoder of lists. A null element is the element type's zero value, as Go servers read it. */
export function listDecoder(items: NodeDecoder, zero: () => unknown, traits: ListTraits): NodeDecoder {
  const { minItems, maxItems } = traits;
  return (input, context, key) => {
    if (!Array.isArray(input)) throw context.typeError(key, 'array', input);
    if (minItems !== undefined && input.length < minItems) {
      context.report(fieldError.invalid(context.path(key), input.length, `must have at least ${minItems} items`));
    } else if (maxItems !== undefined && input.length > maxItems) {
      context.report(fieldError.tooMany(context.path(key), input.length, maxItems));
    }
    context.enter(key, false);
    const out: unknown[] = [];
    for (let index = 0; index < input.length; index += 1) {
      const value: unknown = input[index] ?? zero();
      out.push(value === null ? null : items(value, context, index));
    }
    context.leave();
    return out;
  };
}

/** Decoder of maps. Keys stay in input order; a null value is the value type's zero value, as Go servers read it. */
export function mapDecoder(values: NodeDecoder, zero: () => unknown): NodeDecoder {
  return (input, context, key) => {
    if (typeof input !== 'object' || input === null || Array.isArray(input))
      throw context.typeError(key, 'object', input);
    context.enter(key, true);
    const source = input as Readonly<Record<string, unknown>>;
    const out: Record<string, unknown> = {};
    for (const name of Object.keys(source)) {
      const value = source[name] ?? zero();
      setOwn(out, name, value === null ? null : values(value, context, name));
    }
    context.leave();
    return out;
  };
}
