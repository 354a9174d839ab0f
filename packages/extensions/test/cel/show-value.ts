import { Fault } from '../../src/cel/base/errors.ts';
import {
  Duration,
  ListValue,
  MapValue,
  Optional,
  type Result,
  Timestamp,
  TypeValue,
  typeNameOf,
  Uint,
} from '../../src/cel/base/values.ts';
import { formatTimestamp, goDuration } from '../../src/cel/library/time.ts';

function double(value: number): string {
  if (!Number.isFinite(value)) return `double(${Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf'})`;
  const text = JSON.stringify(value);
  return /[.e]/.test(text) ? text : `${text}.0`;
}

/** A value as the recorded results of cel-go have it. */
export function showValue(value: Result): string {
  if (value instanceof Fault) return `fault(${value.message})`;
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'number') return double(value);
  if (value instanceof Uint) return `${value.value}u`;
  if (value instanceof Uint8Array) return `bytes(${Buffer.from(value).toString('hex')})`;
  if (value instanceof Timestamp) return `timestamp(${formatTimestamp(value.nanos)})`;
  if (value instanceof Duration) return `duration(${goDuration(value.nanos)})`;
  if (value instanceof TypeValue) return `type(${value.name})`;
  if (value instanceof Optional)
    return value.value === undefined ? 'optional.none()' : `optional.of(${showValue(value.value)})`;
  if (value instanceof ListValue) return `[${[...value].map(showValue).join(', ')}]`;
  if (value instanceof MapValue) {
    const entries = [...value.keys()].map((key) => `${showValue(key)}: ${showValue(value.get(key) ?? null)}`);
    return `{${entries.sort().join(', ')}}`;
  }
  return typeof value === 'object' && value !== null ? typeNameOf(value) : String(value);
}
