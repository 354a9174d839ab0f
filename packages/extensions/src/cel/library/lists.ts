import { Fault, noSuchOverload } from '../base/errors.ts';
import { type Functions, listCost } from '../base/functions.ts';
import * as t from '../base/types.ts';
import {
  type CelValue,
  compare,
  Duration,
  equal,
  ListValue,
  Optional,
  type Result,
  sizeOf,
  Uint,
  ValueList,
} from '../base/values.ts';
import { contentSize } from './strings.ts';

const comparableTypes = [
  ...[t.intType, t.uintType, t.doubleType, t.boolType],
  ...[t.durationType, t.timestampType, t.stringType, t.bytesType],
];

const content = { cost: ([value]: CelValue[]) => contentSize(value ?? null) };

function isSorted(list: ListValue): Result {
  for (let i = 1; i < list.size; i++) {
    const order = compare(list.get(i - 1) as CelValue, list.get(i) as CelValue);
    if (order instanceof Fault) return order;
    if (order > 0) return false;
  }
  return true;
}

/** The maximum of a list for `sign` 1, the minimum for -1. */
function extreme(list: ListValue, sign: 1 | -1): Result {
  if (list.size === 0) return new Fault(`${sign === 1 ? 'max' : 'min'} called on empty list`);
  let found = list.get(0);
  for (let i = 1; i < list.size; i++) {
    const item = list.get(i);
    const order = compare(item as CelValue, found as CelValue);
    if (order instanceof Fault) return order;
    if (order * sign > 0) found = item;
  }
  return found;
}

function positionOf(list: ListValue, value: CelValue, step: 1 | -1): bigint {
  for (let i = step === 1 ? 0 : list.size - 1; i >= 0 && i < list.size; i += step) {
    if (equal(list.get(i), value)) return BigInt(i);
  }
  return -1n;
}

/** Adds the list functions of Kubernetes. `add` implements the operator `+`. */
function addKubernetesLists(fns: Functions, add: (x: CelValue, y: CelValue) => Result): void {
  const zeros = [0n, new Uint(0n), 0, new Duration(0n)] as const;
  for (const type of comparableTypes) {
    const list = t.listType(type);
    fns.member('isSorted', [list], t.boolType, isSorted, content);
    fns.member('max', [list], type, (x) => extreme(x, 1), content);
    fns.member('min', [list], type, (x) => extreme(x, -1), content);
  }
  for (const [i, type] of [t.intType, t.uintType, t.doubleType, t.durationType].entries()) {
    const sum = (list: ListValue): Result => {
      let total: Result = zeros[i] ?? 0n;
      for (const item of list) {
        total = total instanceof Fault || item instanceof Fault ? noSuchOverload : add(total, item);
      }
      return total;
    };
    fns.member('sum', [t.listType(type)], type, sum, content);
  }
  const a = t.paramType('A');
  fns.member('indexOf', [t.listType(a), a], t.intType, (list, value) => positionOf(list, value, 1), content);
  fns.member('lastIndexOf', [t.listType(a), a], t.intType, (list, value) => positionOf(list, value, -1), content);
}

function slice(list: ListValue, start: bigint, end: bigint): Result {
  const call = `cannot slice(${start}, ${end})`;
  if (start < 0n || end < 0n) return new Fault(`${call}, negative indexes not supported`);
  if (start > end) return new Fault(`${call}, start index must be less than or equal to end index`);
  if (BigInt(list.size) < end) return new Fault(`${call}, list is length ${list.size}`);
  return new ValueList(([...list] as CelValue[]).slice(Number(start), Number(end)));
}

function flatten(list: ListValue, depth: bigint): CelValue[] {
  const items: CelValue[] = [];
  for (const item of list) {
    if (item instanceof ListValue && depth > 0n) for (const inner of flatten(item, depth - 1n)) items.push(inner);
    else items.push(item as CelValue);
  }
  return items;
}

function sortByKeys(list: ListValue, keys: ListValue): Result {
  if (list.size === 0) return list;
  let fault: Fault | undefined;
  const order = Array.from({ length: list.size }, (_, i) => i).sort((x, y) => {
    const result = compare(keys.get(x) as CelValue, keys.get(y) as CelValue);
    if (!(result instanceof Fault)) return result;
    fault = new Fault('list elements must have the same type');
    return 0;
  });
  return fault ?? new ValueList(order.map((i) => list.get(i) as CelValue));
}

function distinct(list: ListValue): ValueList {
  const kept: CelValue[] = [];
  for (const item of list) if (!kept.some((other) => equal(item, other))) kept.push(item as CelValue);
  return new ValueList(kept);
}

/** Every element may be compared with every other. */
function pairsCost(list: ListValue): number {
  const first = list.size === 0 ? undefined : list.get(0);
  const text = typeof first === 'string' || first instanceof Uint8Array;
  return listCost(list.size ** 2, text ? 2.1 : 2);
}

/** Adds version 3 of the list extension library of cel-go. */
function addExtensionLists(fns: Functions): void {
  const param = t.paramType('T');
  const list = t.listType(param);
  const dyns = t.listType(t.dynType);
  const byResult = { resultCost: (result: Result) => (result instanceof Fault ? 12 : listCost(sizeOf(result))) };
  fns.member('slice', [list, t.intType, t.intType], list, slice, byResult);
  fns.member('flatten', [t.listType(list)], list, (x) => new ValueList(flatten(x, 1n)), {
    cost: ([x]) => listCost(x.size),
  });
  fns.member(
    'flatten',
    [dyns, t.intType],
    dyns,
    (x: ListValue, depth: bigint) =>
      depth < 0n ? new Fault('level must be non-negative') : new ValueList(flatten(x, depth)),
    { cost: ([x, depth]) => listCost(x.size, Math.max(0, Number(depth))) },
  );
  fns.global(
    'lists.range',
    [t.intType],
    t.listType(t.intType),
    (n: bigint) => new ValueList(Array.from({ length: Math.max(0, Number(n)) }, (_, i) => BigInt(i))),
    { ...byResult, resultSize: Number },
  );
  fns.member('reverse', [list], list, (x: ListValue) => new ValueList(([...x] as CelValue[]).reverse()), byResult);
  fns.member('distinct', [list], list, distinct, { cost: ([x]) => pairsCost(x) });
  for (const type of comparableTypes) {
    const typed = t.listType(type);
    fns.member('sort', [typed], typed, (x: ListValue) => sortByKeys(x, x), { cost: ([x]) => pairsCost(x) });
    fns.member('@sortByAssociatedKeys', [list, typed], list, sortByKeys, { cost: ([, keys]) => pairsCost(keys) });
  }
}

function contains(list: ListValue, part: ListValue): boolean {
  for (const item of part) if (item instanceof Fault || !list.includes(item)) return false;
  return true;
}

function addSets(fns: Functions): void {
  const list = t.listType(t.paramType('T'));
  const cost =
    (factor: number) =>
    ([x, y]: CelValue[]): number =>
      Math.ceil(sizeOf(x ?? null) * sizeOf(y ?? null) * factor) + 1;
  fns.global('sets.contains', [list, list], t.boolType, contains, { cost: cost(1) });
  fns.global(
    'sets.equivalent',
    [list, list],
    t.boolType,
    (x: ListValue, y: ListValue) => contains(x, y) && contains(y, x),
    { cost: cost(2) },
  );
  fns.global(
    'sets.intersects',
    [list, list],
    t.boolType,
    (x: ListValue, y: ListValue) => [...x].some((item) => !(item instanceof Fault) && y.includes(item)),
    { cost: cost(1) },
  );
}

function addOptionals(fns: Functions): void {
  const value = t.paramType('V');
  const optional = t.optionalType(value);
  fns.global('optional.of', [value], optional, (x: CelValue) => new Optional(x));
  fns.global('optional.ofNonZeroValue', [value], optional, (x: CelValue) =>
    isZero(x) ? Optional.none : new Optional(x),
  );
  fns.global('optional.none', [], optional, () => Optional.none);
  fns.member('hasValue', [optional], t.boolType, (x: Optional) => x.value !== undefined);
  fns.member('value', [optional], value, (x: Optional) => x.value ?? optionalValue(x));
  fns.member('or', [optional, optional], optional, () => noSuchOverload);
  fns.member('orValue', [optional, value], value, () => noSuchOverload);
  fns.global('optional.unwrap', [t.listType(optional)], t.listType(value), unwrap);
  fns.member('unwrapOpt', [t.listType(optional)], t.listType(value), unwrap);
  fns.member('first', [t.listType(value)], optional, (list: ListValue) => itemAt(list, 0));
  fns.member('last', [t.listType(value)], optional, (list: ListValue) => itemAt(list, list.size - 1));
}

function itemAt(list: ListValue, index: number): Result {
  if (list.size === 0) return Optional.none;
  const item = list.get(index);
  return item instanceof Fault ? item : new Optional(item);
}

function optionalValue({ value }: Optional): Result {
  return value === undefined ? new Fault('optional.none() dereference') : value;
}

function unwrap(list: ListValue): ValueList {
  const items: CelValue[] = [];
  for (const item of list) if (item instanceof Optional && item.value !== undefined) items.push(item.value);
  return new ValueList(items);
}

function isZero(value: CelValue): boolean {
  if (value === null || value === false || value === '' || value === 0n || value === 0) return true;
  if (value instanceof Uint) return value.value === 0n;
  if (value instanceof Duration) return value.nanos === 0n;
  if (value instanceof Uint8Array) return value.length === 0;
  return typeof value === 'object' && 'size' in value && value.size === 0;
}

/** Adds the functions of lists, sets and optional values. */
export function addLists(fns: Functions, add: (x: CelValue, y: CelValue) => Result): void {
  addKubernetesLists(fns, add);
  addExtensionLists(fns);
  addSets(fns);
  addOptionals(fns);
}
