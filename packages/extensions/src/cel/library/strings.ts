import { Fault } from '../base/errors.ts';
import { byFirst, type Functions, traversal } from '../base/functions.ts';
import * as t from '../base/types.ts';
import { type CelValue, ListValue, MapValue, maxInt, sizeOf, stringSize, ValueList } from '../base/values.ts';
import { formatString } from './string-format.ts';

/** The code points of a string. */
function pointsOf(text: string): string[] {
  return Array.from(text);
}

function outOfRange(position: bigint): Fault {
  return new Fault(`index out of range: ${position}`);
}

function charAt(text: string, position: bigint): string | Fault {
  const points = pointsOf(text);
  if (position < 0n || position > BigInt(points.length)) return outOfRange(position);
  return points[Number(position)] ?? '';
}

function substring(text: string, start: bigint, end?: bigint): string | Fault {
  const points = pointsOf(text);
  const size = BigInt(points.length);
  const stop = end ?? size;
  if (end !== undefined && start > end) {
    return new Fault(`invalid substring range. start: ${start}, end: ${end}`);
  }
  if (start < 0n || start > size) return outOfRange(start);
  if (stop > size) return outOfRange(stop);
  return points.slice(Number(start), Number(stop)).join('');
}

/** Converts an index in UTF-16 code units to an index in code points. */
function pointIndex(text: string, unit: number): bigint {
  return unit < 0 ? -1n : BigInt(stringSize(text.slice(0, unit)));
}

function indexOf(text: string, part: string, offset = 0n): bigint | Fault {
  if (part === '' && offset === 0n) return 0n;
  const points = pointsOf(text);
  if (offset < 0n) return outOfRange(offset);
  if (offset > BigInt(points.length)) return -1n;
  if (part === '') return offset;
  const before = points.slice(0, Number(offset)).join('').length;
  return pointIndex(text, text.indexOf(part, before));
}

function lastIndexOf(text: string, part: string, offset?: bigint): bigint | Fault {
  const points = pointsOf(text);
  if (part === '' && offset === undefined) return BigInt(points.length);
  if (offset !== undefined && (offset < 0n || offset > BigInt(points.length))) return outOfRange(offset);
  if (part === '') return offset ?? 0n;
  const before = offset === undefined ? text.length : points.slice(0, Number(offset)).join('').length;
  return pointIndex(text, text.lastIndexOf(part, before));
}

function ascii(text: string, pattern: RegExp, change: (match: string) => string): string {
  return text.replace(pattern, change);
}

/** Replaces at most `limit` occurrences, or all if `limit` is negative. */
function replace(text: string, old: string, replacement: string, limit = -1n): string {
  if (limit < 0n && old !== '') return text.replaceAll(old, () => replacement);
  let left = limit < 0n ? maxInt : limit;
  if (old === '') {
    const points = pointsOf(text);
    let result = '';
    for (let i = 0; i <= points.length; i++) {
      if (left-- > 0n) result += replacement;
      result += points[i] ?? '';
    }
    return result;
  }
  let result = '';
  let at = 0;
  while (left-- > 0n) {
    const found = text.indexOf(old, at);
    if (found < 0) break;
    result += text.slice(at, found) + replacement;
    at = found + old.length;
  }
  return result + text.slice(at);
}

function replacedSize(text: string, old: string, replacement: string, limit = -1n): number {
  const most = old === '' ? text.length + 1 : Math.ceil(text.length / old.length);
  return text.length + (limit < 0n ? most : Math.min(most, Number(limit))) * replacement.length;
}

function split(text: string, separator: string, limit = -1n): ValueList {
  if (limit === 0n) return new ValueList([]);
  const all: CelValue[] = separator === '' ? pointsOf(text) : text.split(separator);
  if (limit < 0n || BigInt(all.length) <= limit) return new ValueList(all);
  const kept = all.slice(0, Number(limit) - 1);
  const rest = all.slice(Number(limit) - 1).join(separator);
  return new ValueList([...kept, rest]);
}

function join(list: ListValue, separator = ''): string | Fault {
  const texts: string[] = [];
  for (const item of list) {
    if (typeof item !== 'string') return new Fault('no such overload');
    texts.push(item);
  }
  return texts.join(separator);
}

function joinedSize(list: ListValue, separator = ''): number {
  let size = list.size * separator.length;
  for (const item of list) size += typeof item === 'string' ? item.length : 0;
  return size;
}

/** Leading and trailing white space of Unicode, as trimmed by Go. */
const outerSpace = /^[\s\u0085]+|[\s\u0085]+$/g;

function quote(text: string): string {
  const names: Record<string, string> = {
    '\u0007': '\\a',
    '\b': '\\b',
    '\f': '\\f',
    '\n': '\\n',
    '\r': '\\r',
    '\t': '\\t',
    '\v': '\\v',
    '\\': '\\\\',
    '"': '\\"',
  };
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that need an escape
  return `"${text.replace(/[\u0007-\r\\"]/g, (char) => names[char] ?? char)}"`;
}

/** The cost-relevant size of an argument of a string or list function: a tenth of the bytes of all its strings. */
export function contentSize(value: CelValue | Fault): number {
  if (typeof value === 'string') return Math.trunc(Buffer.byteLength(value) * 0.1);
  if (value instanceof Uint8Array) return Math.trunc(value.length * 0.1);
  let size = 0;
  if (value instanceof ListValue) {
    for (const item of value) size += contentSize(item);
    return size;
  }
  if (!(value instanceof MapValue)) return 1;
  for (const key of value.keys()) size += contentSize(key) + contentSize(value.get(key) ?? null);
  return size;
}

/** Adds the string functions of CEL, and version 2 of the string extension library of cel-go. */
export function addStrings(fns: Functions): void {
  const { stringType: text, intType: int, boolType: bool } = t;
  const texts = t.listType(text);
  const once = { cost: byFirst() };
  const twice = { cost: byFirst(2) };
  const content = { cost: ([value]: CelValue[]) => contentSize(value ?? null) };
  fns.member('contains', [text, text], bool, (x: string, y: string) => x.includes(y), {
    cost: ([x, y]) => traversal(sizeOf(x)) * traversal(sizeOf(y)),
  });
  fns.member('startsWith', [text, text], bool, (x: string, y: string) => x.startsWith(y), once);
  fns.member('endsWith', [text, text], bool, (x: string, y: string) => x.endsWith(y), once);
  fns.member('charAt', [text, int], text, charAt, { cost: ([x]) => Math.max(1, traversal(sizeOf(x))) });
  fns.member('indexOf', [text, text], int, (x, y) => indexOf(x, y), content);
  fns.member('indexOf', [text, text, int], int, indexOf, content);
  fns.member('lastIndexOf', [text, text], int, (x, y) => lastIndexOf(x, y), content);
  fns.member('lastIndexOf', [text, text, int], int, lastIndexOf, content);
  fns.member('lowerAscii', [text], text, (x: string) => ascii(x, /[A-Z]+/g, (part) => part.toLowerCase()), once);
  fns.member('upperAscii', [text], text, (x: string) => ascii(x, /[a-z]+/g, (part) => part.toUpperCase()), once);
  fns.member('substring', [text, int], text, (x, start) => substring(x, start), once);
  fns.member('substring', [text, int, int], text, substring, once);
  fns.member('trim', [text], text, (x: string) => x.replace(outerSpace, ''), once);
  const replaced = { ...twice, resultSize: replacedSize };
  fns.member('replace', [text, text, text], text, (x, y, z) => replace(x, y, z), replaced);
  fns.member('replace', [text, text, text, int], text, replace, replaced);
  fns.member('split', [text, text], texts, (x, y) => split(x, y), twice);
  fns.member('split', [text, text, int], texts, split, twice);
  const joined = { resultCost: joinCost, resultSize: joinedSize };
  fns.member('join', [texts], text, (list) => join(list), joined);
  fns.member('join', [texts, text], text, join, joined);
  fns.global('strings.quote', [text], text, quote, once);
  fns.member('format', [text, t.listType(t.dynType)], text, formatString, once);
}

function joinCost(result: CelValue | Fault): number {
  return result instanceof Fault ? 1 : Math.ceil(sizeOf(result) * 0.2);
}
