import { Fault } from '../base/errors.ts';
import {
  type CelValue,
  Duration,
  ListValue,
  MapValue,
  Timestamp,
  TypeValue,
  typeNameOf,
  Uint,
} from '../base/values.ts';
import { doubleText } from './conversions.ts';
import { formatTimestamp, goDuration } from './time.ts';

/** Strings inside of lists and maps are quoted. */
function innerText(value: CelValue | Fault): string {
  return typeof value === 'string' ? JSON.stringify(value) : textOf(value);
}

function textOf(value: CelValue | Fault): string {
  if (typeof value === 'string') return value;
  if (value === null) return 'null';
  if (value instanceof Fault) return value.message;
  if (typeof value === 'number') return doubleText(value);
  if (value instanceof Uint) return String(value.value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString();
  if (value instanceof Timestamp) return formatTimestamp(value.nanos);
  if (value instanceof Duration) return goDuration(value.nanos);
  if (value instanceof TypeValue) return value.name;
  if (value instanceof ListValue) return `[${[...value].map(innerText).join(', ')}]`;
  if (value instanceof MapValue) {
    const entries = [...value.keys()].map((key) => `${innerText(key)}: ${innerText(value.get(key) ?? null)}`);
    return `{${entries.sort().join(', ')}}`;
  }
  return String(value);
}

function notSupported(value: CelValue, what: string, supported: string): Fault {
  return new Fault(
    `error during formatting: ${what} clause can only be used on ${supported}, was given ${typeNameOf(value)}`,
  );
}

function integer(value: CelValue, base: number, verb: string): string | Fault {
  const names: Record<string, string> = { d: 'decimal', b: 'binary', o: 'octal', x: 'hex', X: 'hex' };
  const number =
    value instanceof Uint ? value.value : typeof value === 'boolean' && verb === 'b' ? BigInt(value) : value;
  if (typeof number === 'bigint') return number.toString(base);
  if (base === 16) {
    if (typeof value === 'string') return Buffer.from(value).toString('hex');
    if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
    return notSupported(value, 'only integers, byte buffers, and strings can be formatted as hex;', 'those');
  }
  return notSupported(value, names[verb] ?? verb, base === 2 ? 'integers and bools' : 'integers');
}

function superscript(digits: string): string {
  return digits.replace(/\d/g, (digit) => '⁰¹²³⁴⁵⁶⁷⁸⁹'.charAt(Number(digit)));
}

function float(value: CelValue, precision: number, verb: string): string | Fault {
  const number = typeof value === 'bigint' ? Number(value) : value instanceof Uint ? Number(value.value) : value;
  if (typeof number !== 'number') {
    return notSupported(value, verb === 'f' ? 'fixed-point' : 'scientific', 'doubles, integers and unsigned integers');
  }
  if (!Number.isFinite(number)) return Number.isNaN(number) ? 'NaN' : number > 0 ? 'Infinity' : '-Infinity';
  if (verb === 'f') return number.toFixed(Math.min(100, precision));
  const [digits = '', exponent = ''] = number.toExponential(Math.min(100, precision)).split('e');
  const power = exponent.slice(1).padStart(2, '0');
  return `${digits}×10${exponent.startsWith('-') ? '⁻' : ''}${superscript(power)}`;
}

function clause(verb: string, precision: number, value: CelValue): string | Fault {
  switch (verb) {
    case 's':
      return textOf(value);
    case 'd':
      return typeof value === 'number' && !Number.isFinite(value) ? textOf(value) : integer(value, 10, verb);
    case 'b':
      return integer(value, 2, verb);
    case 'o':
      return integer(value, 8, verb);
    case 'x':
      return integer(value, 16, verb);
    case 'X': {
      const text = integer(value, 16, verb);
      return typeof text === 'string' ? text.toUpperCase() : text;
    }
    case 'f':
    case 'e':
      return float(value, precision, verb);
    default:
      return new Fault(`could not parse formatting clause: unrecognized formatting clause "${verb}"`);
  }
}

/** `'%s is %d'.format([x, y])`. */
export function formatString(format: string, args: ListValue): string | Fault {
  let result = '';
  let position = 0;
  let used = 0;
  const pattern = /%(?:\.(\d{1,3}))?([\s\S]?)/g;
  for (let found = pattern.exec(format); found; found = pattern.exec(format)) {
    const [whole, precision = '6', verb = ''] = found;
    result += format.slice(position, found.index);
    position = found.index + whole.length;
    if (verb === '') return new Fault('unexpected end of string');
    if (verb === '%') {
      result += '%';
      continue;
    }
    if (used >= args.size) return new Fault(`index ${used} out of range`);
    const value = args.get(used++);
    const text = value instanceof Fault ? value : clause(verb, Number(precision), value);
    if (text instanceof Fault) return text;
    result += text;
  }
  return result + format.slice(position);
}
