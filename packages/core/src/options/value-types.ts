import { isJsonObject } from '../json/json.ts';
import { DurationError, durationMs, durationOfMs } from '../meta/duration.ts';
import { didYouMean, didYouMeanOneOf, UsageError } from './usage-error.ts';

/** The notation of the values of an option. `source` is the name of the flag, variable or field in messages. */
export interface ValueType<T> {
  /** The type or a placeholder of the value in the help text: `bool`, `HOST:PORT`. */
  readonly name: string;
  /** The value of a flag without a value; when absent, the flag requires a value. */
  readonly bare?: string;
  /**
   * Parses the text of a variable, or of one occurrence of a flag. `earlier` is the value of the earlier occurrences;
   * it is undefined for the first one, which replaces the default.
   *
   * @throws UsageError
   */
  parse(text: string, source: string, earlier?: T): T;
  /**
   * Converts a value of a config file.
   *
   * @param directory directory of the file, to which relative paths refer
   * @throws UsageError
   */
  fromFile(raw: unknown, source: string, directory: string): T;
  /** The text of a value, as `parse` accepts it and the help text shows it; empty for an empty value. */
  format(value: T): string;
}

/** An object of a config file. */
export type RawObject = Readonly<Record<string, unknown>>;

/** The message about a value of a config file that has the wrong type. */
export function wrongValue(source: string, expected: string, raw: unknown): UsageError {
  const shown = isJsonObject(raw) ? 'an object' : Array.isArray(raw) ? 'a list' : JSON.stringify(raw);
  return new UsageError(`${source} must be ${expected}, not ${shown}`);
}

/** @throws UsageError when an object has an unknown key */
export function rejectUnknownKeys(raw: RawObject, known: readonly string[], source: string): void {
  const unknown = Object.keys(raw).find((key) => !known.includes(key));
  if (unknown !== undefined) throw new UsageError(`${source} has no key ${unknown}${didYouMean(unknown, known)}`);
}

/** A text that is not empty. @throws UsageError */
export function requiredText(raw: unknown, source: string): string {
  if (typeof raw === 'string' && raw !== '') return raw;
  throw new UsageError(`${source} must be a non-empty string`);
}

/** @throws UsageError */
export function wholeNumber(raw: unknown, source: string, least = 0): number {
  if (typeof raw === 'number' && Number.isSafeInteger(raw) && raw >= least) return raw;
  throw wrongValue(source, `a whole number of at least ${least}`, raw);
}

/** Milliseconds of a duration such as `10m` that is not negative, rounded up. @throws UsageError */
export function nonNegativeDuration(raw: unknown, source: string): number {
  const ms = duration.fromFile(raw, source, '');
  if (ms < 0) throw new UsageError(`${source} must not be negative, but is ${String(raw)}`);
  return Math.ceil(ms);
}

/** The spellings of true and false: `1 t T true True TRUE`, `0 f F false False FALSE`; undefined for any other text. */
export function parseBool(text: string): boolean | undefined {
  if (/^(1|t|T|true|True|TRUE)$/.test(text)) return true;
  return /^(0|f|F|false|False|FALSE)$/.test(text) ? false : undefined;
}

/** A switch: a flag without a value means true. */
export const bool: ValueType<boolean> = {
  name: 'bool',
  bare: 'true',
  parse(text, source) {
    const value = parseBool(text);
    if (value === undefined) throw wrongValue(source, 'true or false', text);
    return value;
  },
  fromFile(raw, source) {
    if (typeof raw !== 'boolean') throw wrongValue(source, 'true or false', raw);
    return raw;
  },
  format: String,
};

/** Decimal, or with a base prefix: 0x, 0o, 0b, or a leading 0 for octal. */
const integerForm = /^([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[oO]?([0-7]+)|0[bB]([01]+)|(0|[1-9]\d*))$/;

function parseInteger(text: string): bigint | undefined {
  const [, sign = '', hex, octal, binary, decimal] = integerForm.exec(text.length > 80 ? '' : text) ?? [];
  const digits =
    hex !== undefined
      ? `0x${hex}`
      : octal !== undefined
        ? `0o${octal}`
        : binary !== undefined
          ? `0b${binary}`
          : decimal;
  if (digits === undefined) return undefined;
  return sign === '-' ? -BigInt(digits) : BigInt(digits);
}

/** A whole number between two bounds, inclusive; both are exact as JavaScript numbers. */
export function integer(name: string, min: number, max: number): ValueType<number> {
  const range = max === Number.MAX_SAFE_INTEGER ? `at least ${min}` : `between ${min} and ${max}`;
  const parse = (text: string, source: string): number => {
    const value = parseInteger(text);
    if (value === undefined) throw wrongValue(source, 'a whole number', text);
    if (value < min || value > max) throw new UsageError(`${source} must be ${range}, not ${text}`);
    return Number(value);
  };
  return {
    name,
    parse,
    fromFile(raw, source) {
      if (typeof raw !== 'number') throw wrongValue(source, 'a number', raw);
      return parse(String(raw), source);
    },
    format: String,
  };
}

export const float: ValueType<number> = {
  name: 'float',
  parse(text, source) {
    if (!/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text)) throw wrongValue(source, 'a number', text);
    return Number(text);
  },
  fromFile(raw, source) {
    if (typeof raw !== 'number') throw wrongValue(source, 'a number', raw);
    return float.parse(String(raw), source);
  },
  format: String,
};

/** A type whose values are texts, in config files too. */
export function textType<T>(
  name: string,
  parse: (text: string, source: string) => T,
  format: (value: T) => string = String,
): ValueType<T> {
  return {
    name,
    parse,
    fromFile(raw, source) {
      if (typeof raw !== 'string')
        throw wrongValue(source, name === 'duration' ? 'a duration such as 10s' : 'a text', raw);
      return parse(raw, source);
    },
    format,
  };
}

/** Any text, which may be empty. */
export const text: ValueType<string> = textType('string', (given) => given);

/** A duration such as `10s`, in milliseconds. */
export const duration: ValueType<number> = textType(
  'duration',
  (given, source) => {
    try {
      return durationMs(given);
    } catch (error) {
      if (!(error instanceof DurationError)) throw error;
      throw new UsageError(`${source} must be a duration such as 10s or 1h30m: ${error.message}`);
    }
  },
  durationOfMs,
);

/** A text from a closed set. */
export function oneOf<const T extends string>(name: string, words: readonly T[]): ValueType<T> {
  return textType(name, (given, source) => {
    const word = words.find((candidate) => candidate === given);
    if (word === undefined)
      throw new UsageError(`${source}: unsupported value ${JSON.stringify(given)}${didYouMeanOneOf(given, words)}`);
    return word;
  });
}

/** Splits comma-separated values; a value in double quotes may contain commas, and quotes that are doubled. */
export function splitCsv(line: string, source: string): string[] {
  if (line === '') return [];
  const values: string[] = [];
  const form = /(?:"((?:[^"]|"")*)"|([^",]*))(,|$)/y;
  for (;;) {
    const match = form.exec(line);
    if (match === null) throw new UsageError(`${source} has a misplaced quote: ${JSON.stringify(line)}`);
    values.push(match[1] === undefined ? (match[2] ?? '') : match[1].replaceAll('""', '"'));
    if (match[3] === '') return values;
  }
}

/** Values separated by commas; a repeated flag adds values. */
export function listOf<T = string>(
  name: string,
  item: (text: string, source: string, directory?: string) => T,
): ValueType<readonly T[]> {
  return {
    name,
    parse: (line, source, earlier = []) => [...earlier, ...splitCsv(line, source).map((value) => item(value, source))],
    fromFile(raw, source, directory) {
      if (!Array.isArray(raw)) throw wrongValue(source, 'a list of texts', raw);
      return raw.map((value: unknown) => {
        if (typeof value !== 'string') throw wrongValue(source, 'a list of texts', value);
        return item(value, source, directory);
      });
    },
    format: (values) => (values.length === 0 ? '' : `[${values.join(',')}]`),
  };
}

/** A value that is parsed in the same way on the command line and in a config file. */
export function valueType<T>(
  name: string,
  parse: (raw: unknown, source: string, directory?: string) => T,
  format: (value: T) => string = String,
): ValueType<T> {
  return { name, parse: (given, source) => parse(given, source), fromFile: parse, format };
}
