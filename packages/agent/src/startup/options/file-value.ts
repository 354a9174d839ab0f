import { isRecord } from '../../base/json-values.ts';
import type { AnyOption } from './option.ts';
import { ValueError } from './value-type.ts';

/** Returns the field of an option in a configuration file: `syncFrequency` for `sync-frequency`. */
export function fieldName(option: string): string {
  return option.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
}

function wrong(expected: string, raw: unknown): ValueError {
  const shown = isRecord(raw) ? 'an object' : Array.isArray(raw) ? 'a list' : JSON.stringify(raw);
  return new ValueError(`must be ${expected}, not ${shown}`);
}

/** Items of a `stringSlice` may contain commas, which quotes protect; items of other lists must not. */
function itemText({ type }: AnyOption, item: unknown): string {
  if (typeof item !== 'string') throw wrong('a list of texts', item);
  if (type.name === 'stringSlice') return `"${item.replaceAll('"', '""')}"`;
  if (item.includes(',')) throw new ValueError('has an item with a comma');
  return item;
}

function pairText({ type }: AnyOption, key: string, value: unknown): string {
  const isBool = type.name === 'mapStringBool';
  if (isBool ? typeof value !== 'boolean' : typeof value !== 'string' && typeof value !== 'number') {
    throw wrong(isBool ? 'true or false by name' : 'texts by name', value);
  }
  const text = type.format(new Map([[key, value]]));
  if (text.includes(',') || /[=<]/.test(key)) throw new ValueError(`has a bad pair ${JSON.stringify(text)}`);
  return text;
}

/**
 * Converts a value of a configuration file to the notation of the command line: one text for each occurrence of the
 * option.
 *
 * @throws ValueError
 */
export function textsOf(row: AnyOption, raw: unknown): string[] {
  switch (row.type.shape) {
    case 'bool':
      if (typeof raw !== 'boolean') throw wrong('true or false', raw);
      return [String(raw)];
    case 'number':
      if (typeof raw !== 'number') throw wrong('a number', raw);
      return [String(raw)];
    case 'text':
      if (typeof raw !== 'string') throw wrong(row.type.name === 'duration' ? 'a duration such as 10s' : 'a text', raw);
      return [raw];
    case 'list':
      if (!Array.isArray(raw)) throw wrong('a list of texts', raw);
      // One empty text replaces the default by an empty list.
      return raw.length === 0 ? [''] : raw.map((item) => itemText(row, item));
    case 'map':
      if (!isRecord(raw)) throw wrong('an object', raw);
      return Object.keys(raw).length === 0
        ? ['']
        : Object.entries(raw).map(([key, value]) => pairText(row, key, value));
  }
}
