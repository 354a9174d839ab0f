import { Fault } from '../base/errors.ts';
import { byFirst, type Functions } from '../base/functions.ts';
import * as t from '../base/types.ts';
import { type CelValue, Duration, maxInt, maxUint, Timestamp, TypeValue, typeNameOf, Uint } from '../base/values.ts';
import { formatTimestamp, goDuration, parseDuration, parseTimestamp } from './time.ts';

function conversionError(from: t.CelType, to: t.CelType): Fault {
  return new Fault(`type conversion error from '${from.name}' to '${to.name}'`);
}

/** Formats a double like `strconv.FormatFloat(x, 'g', -1, 64)` of Go. */
export function doubleText(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
  if (Object.is(value, -0)) return '-0';
  const [digits = '', exponentText = '0'] = value.toExponential().split('e');
  const exponent = Number(exponentText);
  // In this range neither Go nor JavaScript formats numbers with an exponent.
  if (exponent >= -4 && exponent < 6) return String(value);
  const power = String(Math.abs(exponent)).padStart(2, '0');
  return `${digits}e${exponent < 0 ? '-' : '+'}${power}`;
}

const decimal = /^[+-]?\d+$/;
const floating = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;

function inRange(value: bigint, low: bigint, high: bigint): boolean {
  return value >= low && value <= high;
}

function intOfDouble(value: number): bigint | Fault {
  const fits = value > -(2 ** 63) && value < 2 ** 63;
  return fits ? BigInt(Math.trunc(value)) : new Fault('integer overflow');
}

function doubleOfText(text: string): number | Fault {
  const named: Record<string, number> = { inf: Infinity, infinity: Infinity, nan: Number.NaN };
  const plain = text.replace(/^[+-]/, '').toLowerCase();
  const special = named[plain];
  if (special !== undefined) return text.startsWith('-') ? -special : special;
  const value = floating.test(text) ? Number(text) : Number.NaN;
  return Number.isFinite(value) ? value : conversionError(t.stringType, t.doubleType);
}

function toInt(fns: Functions): void {
  fns.global('int', [t.intType], t.intType, (x) => x);
  fns.global('int', [t.doubleType], t.intType, intOfDouble);
  fns.global('int', [t.durationType], t.intType, (x: Duration) => x.nanos);
  fns.global('int', [t.stringType], t.intType, (x: string) => {
    const value = decimal.test(x) && x.length <= 64 ? BigInt(x.replace(/^\+/, '')) : undefined;
    if (value === undefined || !inRange(value, -maxInt - 1n, maxInt)) return conversionError(t.stringType, t.intType);
    return value;
  });
  fns.global('int', [t.timestampType], t.intType, (x: Timestamp) => {
    const seconds = x.nanos / 1_000_000_000n;
    return x.nanos < 0n && x.nanos % 1_000_000_000n !== 0n ? seconds - 1n : seconds;
  });
  fns.global('int', [t.uintType], t.intType, ({ value }: Uint) =>
    value > maxInt ? new Fault('integer overflow') : value,
  );
}

function toUint(fns: Functions): void {
  fns.global('uint', [t.uintType], t.uintType, (x) => x);
  fns.global('uint', [t.doubleType], t.uintType, (x: number) =>
    x >= 0 && x < 2 ** 64 ? new Uint(BigInt(Math.trunc(x))) : new Fault('unsigned integer overflow'),
  );
  fns.global('uint', [t.intType], t.uintType, (x: bigint) =>
    x < 0n ? new Fault('unsigned integer overflow') : new Uint(x),
  );
  fns.global('uint', [t.stringType], t.uintType, (x: string) => {
    const value = /^\d{1,64}$/.test(x) ? BigInt(x) : undefined;
    return value === undefined || value > maxUint ? conversionError(t.stringType, t.uintType) : new Uint(value);
  });
}

function toText(fns: Functions): void {
  const { stringType: text } = t;
  fns.global('string', [text], text, (x) => x);
  fns.global('string', [t.boolType], text, String);
  fns.global(
    'string',
    [t.bytesType],
    text,
    (x: Uint8Array) => {
      try {
        return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(x);
      } catch {
        return new Fault('invalid UTF-8 in bytes, cannot convert to string');
      }
    },
    { cost: byFirst() },
  );
  fns.global('string', [t.doubleType], text, doubleText);
  fns.global('string', [t.durationType], text, (x: Duration) => goDuration(x.nanos));
  fns.global('string', [t.intType], text, String);
  fns.global('string', [t.timestampType], text, (x: Timestamp) => formatTimestamp(x.nanos));
  fns.global('string', [t.uintType], text, (x: Uint) => String(x.value));
}

/** Adds conversion functions such as `int(x)` and `string(x)`. */
export function addConversions(fns: Functions): void {
  const a = t.paramType('A');
  const { boolType: bool, bytesType: bytes, doubleType: double, stringType: text } = t;
  fns.global('type', [a], t.typeTypeOf(a), (x: CelValue) => new TypeValue(typeNameOf(x)));
  fns.global('dyn', [a], t.dynType, (x) => x);
  fns.global('bool', [bool], bool, (x) => x);
  fns.global('bool', [text], bool, (x: string) => {
    if (['1', 't', 'T', 'true', 'TRUE', 'True'].includes(x)) return true;
    return ['0', 'f', 'F', 'false', 'FALSE', 'False'].includes(x) ? false : conversionError(text, bool);
  });
  fns.global('bytes', [bytes], bytes, (x) => x);
  fns.global('bytes', [text], bytes, (x: string) => new Uint8Array(Buffer.from(x)), { cost: byFirst() });
  fns.global('double', [double], double, (x) => x);
  fns.global('double', [t.intType], double, Number);
  fns.global('double', [text], double, doubleOfText);
  fns.global('double', [t.uintType], double, (x: Uint) => Number(x.value));
  fns.global('duration', [t.durationType], t.durationType, (x) => x);
  fns.global('duration', [t.intType], t.durationType, (x: bigint) => new Duration(x));
  fns.global('duration', [text], t.durationType, (x: string) => {
    return parseDuration(x) ?? conversionError(text, t.durationType);
  });
  fns.global('timestamp', [t.timestampType], t.timestampType, (x) => x);
  fns.global('timestamp', [t.intType], t.timestampType, (x: bigint) => {
    const outside = !inRange(x, -62135596800n, 253402300799n);
    return outside ? new Fault('timestamp overflow') : new Timestamp(x * 1_000_000_000n);
  });
  fns.global('timestamp', [text], t.timestampType, (x: string) => {
    return parseTimestamp(x) ?? conversionError(text, t.timestampType);
  });
  toInt(fns);
  toUint(fns);
  toText(fns);
}
