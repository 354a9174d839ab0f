import { parseBool } from '../../base/parse-bool.ts';
import { ValueError, type ValueType } from './value-type.ts';

/** Splits comma-separated values; a value in double quotes may contain commas, and quotes that are doubled. */
function splitCsv(line: string): string[] {
  if (line === '') return [];
  const values: string[] = [];
  const form = /(?:"((?:[^"]|"")*)"|([^",]*))(,|$)/y;
  for (;;) {
    const match = form.exec(line);
    if (match === null) throw new ValueError(`has a misplaced quote: ${JSON.stringify(line)}`);
    values.push(match[1] === undefined ? (match[2] ?? '') : match[1].replaceAll('""', '"'));
    if (match[3] === '') return values;
  }
}

export const stringSlice: ValueType<readonly string[]> = {
  name: 'stringSlice',
  shape: 'list',
  parse: (line, earlier = []) => [...earlier, ...splitCsv(line)],
  format: (values) => (values.length === 0 ? '' : `[${values.join(',')}]`),
};

interface PairForm<T> {
  readonly name: string;
  readonly separator: '=' | '<';
  /** The form of a pair in error messages. */
  readonly expected: string;
  readonly value: (text: string) => T;
  /** The value of a key without a separator; when absent, such a key is rejected. */
  readonly bareKey?: T;
}

function pairs<T>({ name, separator, expected, value, bareKey }: PairForm<T>): ValueType<ReadonlyMap<string, T>> {
  return {
    name,
    shape: 'map',
    parse(line, earlier = new Map()) {
      const map = new Map(earlier);
      for (const item of line.split(',')) {
        if (item.trim() === '') continue;
        const at = item.indexOf(separator);
        if (at >= 0) map.set(item.slice(0, at).trim(), value(item.slice(at + 1).trim()));
        else if (bareKey !== undefined) map.set(item.trim(), bareKey);
        else throw new ValueError(`malformed pair, expect ${expected}: ${JSON.stringify(item)}`);
      }
      return map;
    },
    format: (map) => [...map].map(([key, entry]) => `${key}${separator}${String(entry)}`).join(','),
  };
}

const string = (text: string): string => text;

export const mapStringString: ValueType<ReadonlyMap<string, string>> = pairs({
  name: 'mapStringString',
  separator: '=',
  expected: 'string=string',
  value: string,
});

/** Labels; a key without a separator has an empty value. */
export const labelMap: ValueType<ReadonlyMap<string, string>> = pairs({
  name: 'mapStringString',
  separator: '=',
  expected: 'string=string',
  value: string,
  bareKey: '',
});

/** Thresholds: `memory.available<100Mi`. */
export const thresholdMap: ValueType<ReadonlyMap<string, string>> = pairs({
  name: 'mapStringString',
  separator: '<',
  expected: 'string<string',
  value: string,
});

export const mapStringBool: ValueType<ReadonlyMap<string, boolean>> = pairs({
  name: 'mapStringBool',
  separator: '=',
  expected: 'string=bool',
  value(given) {
    const value = parseBool(given);
    if (value === undefined)
      throw new ValueError(`malformed pair, expect string=bool: ${JSON.stringify(given)} is neither true nor false`);
    return value;
  },
});

/** Headers in the given order; a name may occur more than once. */
export type HeaderList = readonly (readonly [name: string, value: string])[];

const tokenForm = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const headerTextForm = /^[\t\x20-\x7e\x80-\xff]*$/;

export const headerList: ValueType<HeaderList> = {
  name: 'string',
  shape: 'list',
  parse(line, earlier = []) {
    const list = [...earlier];
    for (const item of line.split(',')) {
      if (item.trim() === '') continue;
      const at = item.indexOf(':');
      const name = item.slice(0, Math.max(at, 0)).trim();
      const value = item.slice(at + 1).trim();
      // The message omits the value because it may be a credential.
      if (at < 0) throw new ValueError('must be name:value, several separated by commas');
      if (!tokenForm.test(name)) throw new ValueError(`has an invalid HTTP header name: ${JSON.stringify(name)}`);
      if (!headerTextForm.test(value))
        throw new ValueError(`has a value for ${name} with characters that are invalid in an HTTP header`);
      list.push([name, value]);
    }
    return list;
  },
  format: (list) => list.map(([name, value]) => `${name}:${value}`).join(','),
};
