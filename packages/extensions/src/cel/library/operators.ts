import { Fault, noSuchOverload } from '../base/errors.ts';
import { type Functions, traversal } from '../base/functions.ts';
import * as t from '../base/types.ts';
import {
  type CelValue,
  compare,
  Duration,
  equal,
  ListValue,
  MapValue,
  maxInt,
  maxUint,
  OpaqueValue,
  sizeOf,
  Timestamp,
  Uint,
  ValueMap,
} from '../base/values.ts';

const a = t.paramType('A');
const b = t.paramType('B');
const listOfA = t.listType(a);
const mapOfAB = t.mapType(a, b);

function int(value: bigint): bigint | Fault {
  return value > maxInt || value < -maxInt - 1n ? new Fault('integer overflow') : value;
}

function uint(value: bigint): Uint | Fault {
  return value > maxUint || value < 0n ? new Fault('unsigned integer overflow') : new Uint(value);
}

function duration(nanos: bigint): Duration | Fault {
  return nanos > maxInt || nanos < -maxInt - 1n ? new Fault('duration overflow') : new Duration(nanos);
}

/** Creates a timestamp. Valid are the years from 1 to 9999. */
export function timestamp(nanos: bigint): Timestamp | Fault {
  return nanos < -62135596800n * 1_000_000_000n || nanos >= 253402300800n * 1_000_000_000n
    ? new Fault('timestamp overflow')
    : new Timestamp(nanos);
}

type Pair = readonly CelValue[];

const smaller = ([x = null, y = null]: Pair): number => traversal(Math.min(sizeOf(x), sizeOf(y)));
const both = ([x = null, y = null]: Pair): number => traversal(sizeOf(x) + sizeOf(y));

/** The cost of a comparison. Opaque values such as IP addresses are small and cost 1. */
const equality = ([x = null, y = null]: Pair): number => (x instanceof OpaqueValue ? 1 : smaller([x, y]));

function arithmetic(fns: Functions): void {
  const { intType: i, uintType: u, doubleType: d, durationType: duration_, timestampType: time } = t;
  const mod = new Fault('modulus by zero');
  const zero = new Fault('division by zero');
  fns.global('_+_', [t.bytesType, t.bytesType], t.bytesType, (x, y) => Buffer.concat([x, y]), { cost: both });
  fns.global('_+_', [d, d], d, (x: number, y: number) => x + y);
  fns.global('_+_', [duration_, duration_], duration_, (x: Duration, y: Duration) => duration(x.nanos + y.nanos));
  fns.global('_+_', [duration_, time], time, (x: Duration, y: Timestamp) => timestamp(x.nanos + y.nanos));
  fns.global('_+_', [time, duration_], time, (x: Timestamp, y: Duration) => timestamp(x.nanos + y.nanos));
  fns.global('_+_', [i, i], i, (x: bigint, y: bigint) => int(x + y));
  // The concatenation copies the second list, so a long second list has a cost.
  fns.global('_+_', [listOfA, listOfA], listOfA, (x: ListValue, y: ListValue) => x.join(y), {
    cost: ([, y]) => (y.size > 64 ? traversal(y.size) : 1),
  });
  fns.global('_+_', [t.stringType, t.stringType], t.stringType, (x: string, y: string) => x + y, { cost: both });
  fns.global('_+_', [u, u], u, (x: Uint, y: Uint) => uint(x.value + y.value));
  fns.global('_-_', [d, d], d, (x: number, y: number) => x - y);
  fns.global('_-_', [duration_, duration_], duration_, (x: Duration, y: Duration) => duration(x.nanos - y.nanos));
  fns.global('_-_', [i, i], i, (x: bigint, y: bigint) => int(x - y));
  fns.global('_-_', [time, duration_], time, (x: Timestamp, y: Duration) => timestamp(x.nanos - y.nanos));
  fns.global('_-_', [time, time], duration_, (x: Timestamp, y: Timestamp) => duration(x.nanos - y.nanos));
  fns.global('_-_', [u, u], u, (x: Uint, y: Uint) => uint(x.value - y.value));
  fns.global('_*_', [d, d], d, (x: number, y: number) => x * y);
  fns.global('_*_', [i, i], i, (x: bigint, y: bigint) => int(x * y));
  fns.global('_*_', [u, u], u, (x: Uint, y: Uint) => uint(x.value * y.value));
  fns.global('_/_', [d, d], d, (x: number, y: number) => x / y);
  fns.global('_/_', [i, i], i, (x: bigint, y: bigint) => (y === 0n ? zero : int(x / y)));
  fns.global('_/_', [u, u], u, (x: Uint, y: Uint) => (y.value === 0n ? zero : uint(x.value / y.value)));
  fns.global('_%_', [i, i], i, (x: bigint, y: bigint) => (y === 0n ? mod : int(x % y)));
  fns.global('_%_', [u, u], u, (x: Uint, y: Uint) => (y.value === 0n ? mod : uint(x.value % y.value)));
  fns.global('-_', [d], d, (x: number) => -x);
  fns.global('-_', [i], i, (x: bigint) => int(-x));
}

function comparison(fns: Functions): void {
  const { intType: i, uintType: u, doubleType: d } = t;
  const plain = [t.boolType, t.timestampType, t.durationType].map((type) => [type, type]);
  const numeric = [i, u, d].flatMap((x) => [i, u, d].map((y) => [x, y]));
  const text = [t.stringType, t.bytesType].map((type) => [type, type]);
  const tests: Record<string, (order: number) => boolean> = {
    '_<_': (order) => order < 0,
    '_<=_': (order) => order <= 0,
    '_>_': (order) => order > 0,
    '_>=_': (order) => order >= 0,
  };
  for (const [name, test] of Object.entries(tests)) {
    const call = (x: CelValue, y: CelValue): boolean | Fault => {
      const order = compare(x, y);
      return order instanceof Fault ? order : test(order);
    };
    for (const types of [...plain, ...numeric]) fns.global(name, types, t.boolType, call);
    for (const types of text) fns.global(name, types, t.boolType, call, { cost: smaller });
  }
  fns.global('_==_', [a, a], t.boolType, equal, { cost: equality });
  fns.global('_!=_', [a, a], t.boolType, (x: CelValue, y: CelValue) => !equal(x, y), { cost: smaller });
}

function indexed(list: ListValue, index: CelValue): ReturnType<ListValue['get']> {
  const position = typeof index === 'number' || typeof index === 'bigint' ? Number(index) : indexOfUint(index);
  if (position === undefined) return new Fault(`unsupported index type '${describe(index)}' in list`);
  if (!Number.isInteger(position)) return new Fault(`unsupported index value ${position} in list`);
  return position < 0 || position >= list.size ? new Fault(`index out of bounds: ${position}`) : list.get(position);
}

function indexOfUint(index: CelValue): number | undefined {
  return index instanceof Uint ? Number(index.value) : undefined;
}

function describe(value: CelValue): string {
  return typeof value === 'string' ? 'string' : typeof value === 'boolean' ? 'bool' : 'dyn';
}

export const unsupportedKey = new Fault('unsupported key type');

/** The operator `x[y]`, and the selection `x.y` with `y` as a string. */
export function index(value: CelValue, key: CelValue): ReturnType<ListValue['get']> {
  if (value instanceof ListValue) return indexed(value, key);
  if (!(value instanceof MapValue)) return new Fault(`no such key: ${keyText(key)}`);
  const found = value.get(key);
  return found === undefined ? new Fault(`no such key: ${keyText(key)}`) : found;
}

function keyText(key: CelValue): string {
  return key instanceof Uint ? String(key.value) : String(key);
}

function collections(fns: Functions): void {
  fns.global('_[_]', [listOfA, t.intType], a, index);
  fns.global('_[_]', [mapOfAB, a], b, index);
  const opt = t.optionalType;
  fns.global('_[_]', [opt(listOfA), t.intType], opt(a), () => noSuchOverload);
  fns.global('_[_]', [opt(mapOfAB), a], opt(b), () => noSuchOverload);
  fns.global('_[?_]', [listOfA, t.intType], opt(a), () => noSuchOverload);
  fns.global('_[?_]', [opt(listOfA), t.intType], opt(a), () => noSuchOverload);
  fns.global('_[?_]', [mapOfAB, a], opt(b), () => noSuchOverload);
  fns.global('_[?_]', [opt(mapOfAB), a], opt(b), () => noSuchOverload);
  fns.global('@in', [a, listOfA], t.boolType, (x: CelValue, list: ListValue) => list.includes(x), {
    cost: ([, list]) => list.size,
  });
  fns.global('@in', [a, mapOfAB], t.boolType, (x: CelValue, map: MapValue) => map.has(x));
  for (const type of [t.bytesType, listOfA, mapOfAB, t.stringType]) {
    const size = (x: CelValue): bigint => BigInt(sizeOf(x));
    fns.global('size', [type], t.intType, size);
    fns.member('size', [type], t.intType, size);
  }
  const insert = (map: MapValue, entries: readonly (readonly [CelValue, CelValue])[]): MapValue | Fault => {
    // A macro that fills a map may modify the map itself. Only the empty map with which it starts is shared.
    const target = map.size === 0 ? new ValueMap() : (map as ValueMap);
    for (const [key, value] of entries) {
      if (target.has(key)) return new Fault(`insert failed: key ${keyText(key)} already exists`);
      if (!target.set(key, value)) return unsupportedKey;
    }
    return target;
  };
  fns.global('cel.@mapInsert', [mapOfAB, a, b], mapOfAB, (map, key, value) => insert(map, [[key, value]]));
  fns.global('cel.@mapInsert', [mapOfAB, mapOfAB], mapOfAB, (map: MapValue, added: MapValue) =>
    insert(
      map,
      [...added.keys()].map((key) => [key, added.get(key) as CelValue]),
    ),
  );
}

/**
 * Adds the operators. The interpreter itself evaluates `&&`, `||` and `?:`, which do not need all of their operands.
 */
export function addOperators(fns: Functions): void {
  const bool = t.boolType;
  fns.global('_?_:_', [bool, a, a], a, () => noSuchOverload);
  fns.global('_&&_', [bool, bool], bool, () => noSuchOverload);
  fns.global('_||_', [bool, bool], bool, () => noSuchOverload);
  fns.global('@not_strictly_false', [bool], bool, () => noSuchOverload);
  fns.global('!_', [bool], bool, (x: boolean) => !x);
  arithmetic(fns);
  comparison(fns);
  collections(fns);
}
