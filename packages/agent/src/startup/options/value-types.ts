import { isIP } from 'node:net';
import {
  integer,
  isJsonObject,
  listOf,
  parseBool,
  textType,
  UsageError,
  type ValueType,
  wrongValue,
} from '@keelson/core/internal';

export const int32: ValueType<number> = integer('int32', -(2 ** 31), 2 ** 31 - 1);
/** A 64-bit integer, limited to the range in which JavaScript numbers are exact. */
export const int: ValueType<number> = integer('int', Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);

export const ip: ValueType<string> = textType('ip', (given, source) => {
  const trimmed = given.trim();
  if (isIP(trimmed) === 0) throw wrongValue(source, 'an IP address', given);
  return trimmed;
});

/** The output that `--version` requests. */
export type VersionRequest = 'none' | 'line' | 'raw';

export const version: ValueType<VersionRequest> = {
  bare: 'true',
  ...textType(
    'version[=true]',
    (given, source): VersionRequest => {
      if (given === 'raw') return 'raw';
      const value = parseBool(given);
      if (value === undefined) throw wrongValue(source, 'true, false or raw', given);
      return value ? 'line' : 'none';
    },
    () => '',
  ),
};

export const stringSlice: ValueType<readonly string[]> = listOf('stringSlice', (item) => item);

interface PairForm<T> {
  readonly name: string;
  readonly separator: '=' | '<';
  /** The form of a pair in error messages. */
  readonly expected: string;
  readonly value: (text: string, source: string) => T;
  /** The value of a key without a separator; when absent, such a key is rejected. */
  readonly bareKey?: T;
  /** Types of the values in a configuration file, and their description in error messages. */
  readonly inFile: { readonly types: readonly string[]; readonly expected: string };
}

function pairs<T>({
  name,
  separator,
  expected,
  value,
  bareKey,
  inFile,
}: PairForm<T>): ValueType<ReadonlyMap<string, T>> {
  return {
    name,
    parse(line, source, earlier = new Map()) {
      const map = new Map(earlier);
      for (const item of line.split(',')) {
        if (item.trim() === '') continue;
        const at = item.indexOf(separator);
        if (at >= 0) map.set(item.slice(0, at).trim(), value(item.slice(at + 1).trim(), source));
        else if (bareKey !== undefined) map.set(item.trim(), bareKey);
        else throw new UsageError(`${source}: malformed pair, expect ${expected}: ${JSON.stringify(item)}`);
      }
      return map;
    },
    fromFile(raw, source) {
      if (!isJsonObject(raw)) throw wrongValue(source, 'an object', raw);
      return new Map(
        Object.entries(raw).map(([key, item]) => {
          if (!inFile.types.includes(typeof item)) throw wrongValue(source, inFile.expected, item);
          return [key, value(String(item), source)];
        }),
      );
    },
    format: (map) => [...map].map(([key, entry]) => `${key}${separator}${String(entry)}`).join(','),
  };
}

const textPairs = {
  name: 'mapStringString',
  value: (text: string) => text,
  inFile: { types: ['string', 'number'], expected: 'texts by name' },
} as const;

export const mapStringString: ValueType<ReadonlyMap<string, string>> = pairs({
  ...textPairs,
  separator: '=',
  expected: 'string=string',
});

/** Labels; a key without a separator has an empty value. */
export const labelMap: ValueType<ReadonlyMap<string, string>> = pairs({
  ...textPairs,
  separator: '=',
  expected: 'string=string',
  bareKey: '',
});

/** Thresholds: `memory.available<100Mi`. */
export const thresholdMap: ValueType<ReadonlyMap<string, string>> = pairs({
  ...textPairs,
  separator: '<',
  expected: 'string<string',
});

export const mapStringBool: ValueType<ReadonlyMap<string, boolean>> = pairs({
  name: 'mapStringBool',
  separator: '=',
  expected: 'string=bool',
  value(given, source) {
    const value = parseBool(given);
    if (value !== undefined) return value;
    const problem = `${JSON.stringify(given)} is neither true nor false`;
    throw new UsageError(`${source}: malformed pair, expect string=bool: ${problem}`);
  },
  inFile: { types: ['boolean'], expected: 'true or false by name' },
});

/** A type of lists whose items are separated by commas and contain none. */
export function itemList<T>(
  name: string,
  parseItem: (item: string, source: string) => T,
  format: (item: T) => string,
  check: (items: readonly T[], source: string) => readonly T[] = (items) => items,
): ValueType<readonly T[]> {
  return {
    name,
    parse(line, source, earlier = []) {
      const items = line.split(',').filter((item) => item.trim() !== '');
      return check([...earlier, ...items.map((item) => parseItem(item, source))], source);
    },
    fromFile(raw, source) {
      if (!Array.isArray(raw)) throw wrongValue(source, 'a list of texts', raw);
      const items = raw.map((item: unknown) => {
        if (typeof item !== 'string') throw wrongValue(source, 'a list of texts', item);
        return parseItem(item, source);
      });
      return check(items, source);
    },
    format: (items) => items.map(format).join(','),
  };
}

/** Headers in the given order; a name may occur more than once. */
export type HeaderList = readonly (readonly [name: string, value: string])[];

const tokenForm = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const headerTextForm = /^[\t\x20-\x7e\x80-\xff]*$/;

export const headerList: ValueType<HeaderList> = itemList(
  'string',
  (item, source) => {
    const at = item.indexOf(':');
    const name = item.slice(0, Math.max(at, 0)).trim();
    const value = item.slice(at + 1).trim();
    // The message omits the value because it may be a credential.
    if (at < 0) throw new UsageError(`${source} must be name:value, several separated by commas`);
    if (!tokenForm.test(name))
      throw new UsageError(`${source} has an invalid HTTP header name: ${JSON.stringify(name)}`);
    if (!headerTextForm.test(value))
      throw new UsageError(`${source} has a value for ${name} with characters that are invalid in an HTTP header`);
    return [name, value] as const;
  },
  ([name, value]) => `${name}:${value}`,
);
