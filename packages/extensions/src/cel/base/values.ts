import { Fault, noSuchOverload } from './errors.ts';

/** A value of an expression: int is a bigint, double a number. */
export type CelValue =
  | null
  | boolean
  | bigint
  | number
  | string
  | Uint8Array
  | Uint
  | Timestamp
  | Duration
  | TypeValue
  | Optional
  | ListValue
  | MapValue
  | OpaqueValue;

export type Result = CelValue | Fault;

export const maxInt = 2n ** 63n - 1n;
export const maxUint = 2n ** 64n - 1n;

export class Uint {
  readonly value: bigint;
  constructor(value: bigint) {
    this.value = value;
  }
}

/** Nanoseconds since 1970. */
export class Timestamp {
  readonly nanos: bigint;
  constructor(nanos: bigint) {
    this.nanos = nanos;
  }
}

export class Duration {
  readonly nanos: bigint;
  constructor(nanos: bigint) {
    this.nanos = nanos;
  }
}

export class TypeValue {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

export class Optional {
  static readonly none = new Optional(undefined);
  readonly value: CelValue | undefined;
  constructor(value: CelValue | undefined) {
    this.value = value;
  }
}

/** A value without fields that only functions can use, such as an IP address. */
export abstract class OpaqueValue {
  abstract readonly typeName: string;
  abstract equals(other: OpaqueValue): boolean;
}

export abstract class ListValue {
  abstract readonly size: number;
  abstract get(index: number): Result;

  equals(other: ListValue): boolean {
    if (this.size !== other.size) return false;
    for (let i = 0; i < this.size; i++) if (!equal(this.get(i), other.get(i))) return false;
    return true;
  }

  join(other: ListValue): ListValue {
    return ValueList.join(this, other);
  }

  includes(value: CelValue): boolean {
    for (let i = 0; i < this.size; i++) if (equal(this.get(i), value)) return true;
    return false;
  }

  *[Symbol.iterator](): Generator<Result> {
    for (let i = 0; i < this.size; i++) yield this.get(i);
  }
}

/**
 * A list created by an expression: the first `size` items of an array. A list that extends another one shares its
 * array, so that a macro that appends one item in each step takes linear time.
 */
export class ValueList extends ListValue {
  readonly #items: CelValue[];
  readonly size: number;

  constructor(items: CelValue[], size = items.length) {
    super();
    this.#items = items;
    this.size = size;
  }

  get(index: number): Result {
    return this.#items[index] ?? null;
  }

  static join(left: ListValue, right: ListValue): ListValue {
    if (right.size === 0) return left;
    const extend = left instanceof ValueList && left.size > 0 && left.#items.length === left.size;
    const items = extend ? left.#items : ([...left] as CelValue[]);
    for (let i = 0; i < right.size; i++) items.push(right.get(i) as CelValue);
    return new ValueList(items);
  }
}

export abstract class MapValue {
  abstract readonly size: number;
  /** Returns undefined if the map has no such key. */
  abstract get(key: CelValue): Result | undefined;
  abstract keys(): Iterable<CelValue>;
  /** The name of the type in the result of `type(x)`. */
  get typeName(): string {
    return 'map';
  }

  has(key: CelValue): boolean {
    return this.get(key) !== undefined;
  }

  equals(other: MapValue): boolean {
    if (this.size !== other.size) return false;
    for (const key of this.keys()) {
      const value = other.get(key);
      if (value === undefined || !equal(this.get(key) ?? null, value)) return false;
    }
    return true;
  }
}

/**
 * A representation of a key that is the same for equal numbers of all types. Undefined for a value that equals no key.
 */
function canonicalKey(key: CelValue): string | bigint | boolean | undefined {
  if (typeof key === 'string' || typeof key === 'bigint' || typeof key === 'boolean') return key;
  if (key instanceof Uint) return key.value;
  return typeof key === 'number' && Number.isInteger(key) ? BigInt(key) : undefined;
}

/** A map created by an expression. */
export class ValueMap extends MapValue {
  readonly #entries = new Map<string | bigint | boolean, readonly [key: CelValue, value: CelValue]>();

  get size(): number {
    return this.#entries.size;
  }

  get(key: CelValue): Result | undefined {
    const canonical = canonicalKey(key);
    return canonical === undefined ? undefined : this.#entries.get(canonical)?.[1];
  }

  /** Adds or replaces an entry. Returns false if the value cannot be a key. */
  set(key: CelValue, value: CelValue): boolean {
    const canonical = canonicalKey(key);
    if (canonical === undefined) return false;
    this.#entries.set(canonical, [key, value]);
    return true;
  }

  *keys(): Iterable<CelValue> {
    for (const [key] of this.#entries.values()) yield key;
  }
}

export function typeNameOf(value: CelValue): string {
  switch (typeof value) {
    case 'string':
      return 'string';
    case 'bigint':
      return 'int';
    case 'number':
      return 'double';
    case 'boolean':
      return 'bool';
    default:
      if (value === null) return 'null_type';
      if (value instanceof ListValue) return 'list';
      if (value instanceof MapValue || value instanceof OpaqueValue) return value.typeName;
      if (value instanceof Uint8Array) return 'bytes';
      if (value instanceof Uint) return 'uint';
      if (value instanceof Timestamp) return 'google.protobuf.Timestamp';
      if (value instanceof Duration) return 'google.protobuf.Duration';
      return value instanceof Optional ? 'optional_type' : 'type';
  }
}

/** The number of bytes, code points or elements of a value, or 1 for other values. Costs are computed from it. */
export function sizeOf(value: CelValue): number {
  if (typeof value === 'string') return stringSize(value);
  if (value instanceof Uint8Array) return value.length;
  if (value instanceof ListValue || value instanceof MapValue || isSized(value)) return value.size;
  if (value instanceof Optional && value.value !== undefined) return sizeOf(value.value);
  return 1;
}

function isSized(value: CelValue): value is OpaqueValue & { size: number } {
  return value instanceof OpaqueValue && 'size' in value;
}

// Cached sizes of recent long strings. Repeated calls of `size` must be fast, because their cost is low.
const knownSizes = new Map<string, number>();

/** The number of code points. */
export function stringSize(text: string): number {
  if (text.length > 1024) {
    const known = knownSizes.get(text);
    if (known !== undefined) return known;
  }
  let size = text.length;
  for (let i = 0; i + 1 < text.length; i++) {
    if ((text.charCodeAt(i) & 0xfc00) === 0xd800 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) size--;
  }
  if (text.length > 1024) {
    if (knownSizes.size >= 16) knownSizes.clear();
    knownSizes.set(text, size);
  }
  return size;
}

export function isNumeric(value: Result): value is bigint | number | Uint {
  return typeof value === 'bigint' || typeof value === 'number' || value instanceof Uint;
}

/** A number that JavaScript operators compare exactly with numbers of the other CEL types. */
function comparable(value: bigint | number | Uint): bigint | number {
  return value instanceof Uint ? value.value : value;
}

function bytesOrder(a: Uint8Array, b: Uint8Array): number {
  return Buffer.compare(a, b);
}

/** By code points, as UTF-8 sorts; JavaScript compares code units. */
export function stringOrder(a: string, b: string): number {
  if (a === b) return 0;
  const end = Math.min(a.length, b.length);
  for (let i = 0; i < end; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x === y) continue;
    const xHigh = (x & 0xf800) === 0xd800;
    const yHigh = (y & 0xf800) === 0xd800;
    return xHigh === yHigh ? Math.sign(x - y) : xHigh ? 1 : -1;
  }
  return Math.sign(a.length - b.length);
}

export function equal(a: Result, b: Result): boolean {
  if (a === b) return true;
  if (isNumeric(a)) return isNumeric(b) && compare(a, b) === 0;
  if (a instanceof ListValue) return b instanceof ListValue && a.equals(b);
  if (a instanceof MapValue) return b instanceof MapValue && a.equals(b);
  if (a instanceof Uint8Array) return b instanceof Uint8Array && bytesOrder(a, b) === 0;
  if (a instanceof Timestamp) return b instanceof Timestamp && a.nanos === b.nanos;
  if (a instanceof Duration) return b instanceof Duration && a.nanos === b.nanos;
  if (a instanceof TypeValue) return b instanceof TypeValue && a.name === b.name;
  if (a instanceof OpaqueValue) return b instanceof OpaqueValue && a.typeName === b.typeName && a.equals(b);
  if (!(a instanceof Optional && b instanceof Optional)) return false;
  if (a.value === undefined || b.value === undefined) return a.value === b.value;
  return equal(a.value, b.value);
}

/** -1, 0 or 1. */
export function compare(a: CelValue, b: CelValue): number | Fault {
  if (isNumeric(a)) {
    if (!isNumeric(b)) return noSuchOverload;
    const x = comparable(a);
    const y = comparable(b);
    if (Number.isNaN(x) || Number.isNaN(y)) return new Fault('NaN values cannot be ordered');
    return x < y ? -1 : x > y ? 1 : 0;
  }
  if (typeof a === 'string') return typeof b === 'string' ? stringOrder(a, b) : noSuchOverload;
  if (typeof a === 'boolean') return typeof b === 'boolean' ? Number(a) - Number(b) : noSuchOverload;
  if (a instanceof Uint8Array) return b instanceof Uint8Array ? bytesOrder(a, b) : noSuchOverload;
  const times = (a instanceof Timestamp && b instanceof Timestamp) || (a instanceof Duration && b instanceof Duration);
  if (!times) return noSuchOverload;
  return a.nanos < b.nanos ? -1 : a.nanos > b.nanos ? 1 : 0;
}
