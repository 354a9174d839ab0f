import { Fault, noSuchOverload } from './base/errors.ts';
import { type CelValue, ListValue, MapValue, Optional, type Result, typeNameOf } from './base/values.ts';
import { index } from './library/operators.ts';

export function through(value: Result, then: (value: CelValue) => Result): Result {
  return value instanceof Fault ? value : then(value);
}

export function notIterable(value: CelValue): Fault {
  const name = typeNameOf(value);
  const shown = name === 'null_type' ? 'Null' : `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
  return new Fault(`got 'types.${shown}', expected iterable type`);
}

export function notOptional(what: string, value: CelValue): Fault {
  return new Fault(`cannot initialize optional ${what} from non-optional value ${String(value)}`);
}

/** Selects a field or key of a value. The result for an optional value is optional. */
export function selectedByKey(value: CelValue, key: CelValue): Result {
  if (value instanceof Optional) return value.value === undefined ? value : optionallySelected(value.value, key);
  return index(value, key);
}

export function optionallySelected(value: CelValue, key: CelValue): Result {
  if (value instanceof Optional) return value.value === undefined ? value : optionallySelected(value.value, key);
  if (value instanceof ListValue) {
    const inside = typeof key === 'bigint' && key >= 0n && key < BigInt(value.size);
    return inside ? through(index(value, key), (found) => new Optional(found)) : Optional.none;
  }
  if (!(value instanceof MapValue)) return index(value, key);
  const found = value.get(key);
  return found === undefined ? Optional.none : through(found, (known) => new Optional(known));
}

export function present(value: CelValue, field: string): Result {
  if (value instanceof Optional) return value.value !== undefined && present(value.value, field);
  return value instanceof MapValue ? value.has(field) : noSuchOverload;
}
