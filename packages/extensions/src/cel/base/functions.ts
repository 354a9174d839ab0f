import { Fault, noSuchOverload } from './errors.ts';
import type { CelType } from './types.ts';
import {
  type CelValue,
  Duration,
  ListValue,
  MapValue,
  OpaqueValue,
  Optional,
  type Result,
  sizeOf,
  Timestamp,
  TypeValue,
  typeNameOf,
  Uint,
} from './values.ts';

/** One signature of a function, with its implementation and cost. Costs are those of Kubernetes; the default is 1. */
export interface Overload {
  readonly args: readonly CelType[];
  readonly member: boolean;
  readonly result: CelType;
  // biome-ignore lint/suspicious/noExplicitAny: the dispatch has compared the arguments with the declared types
  readonly call: (...args: any[]) => Result;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly cost: ((args: any[]) => number) | undefined;
  /** Computes the cost from the result. It replaces `cost`. */
  readonly resultCost: ((result: Result) => number) | undefined;
  /**
   * Computes the size of the result in advance, so that an excessive size is rejected before the work is done. Required
   * only where the work is not in proportion to the cost.
   */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly resultSize: ((...args: any[]) => number) | undefined;
}

type OverloadOptions = Partial<Pick<Overload, 'cost' | 'resultCost' | 'resultSize'>>;

const noOptions = { cost: undefined, resultCost: undefined, resultSize: undefined };

/** The functions of expressions by name. */
export class Functions {
  readonly #overloads = new Map<string, Overload[]>();

  #add(name: string, overload: Overload): void {
    const known = this.#overloads.get(name);
    if (known) known.push(overload);
    else this.#overloads.set(name, [overload]);
  }

  /** Adds a function that is called as `name(x)`. */
  global(
    name: string,
    args: readonly CelType[],
    result: CelType,
    call: Overload['call'],
    options: OverloadOptions = {},
  ): void {
    this.#add(name, { args, member: false, result, call, ...noOptions, ...options });
  }

  /** Adds a function that is called as `x.name()`. Its first argument is `x`. */
  member(
    name: string,
    args: readonly CelType[],
    result: CelType,
    call: Overload['call'],
    options: OverloadOptions = {},
  ): void {
    this.#add(name, { args, member: true, result, call, ...noOptions, ...options });
  }

  find(name: string): readonly Overload[] | undefined {
    return this.#overloads.get(name);
  }
}

/** Whether a value can be an argument of this type. The elements of lists and maps are not examined. */
export function hasType(value: CelValue, type: CelType): boolean {
  switch (type.kind) {
    case 'string':
      return typeof value === 'string';
    case 'int':
      return typeof value === 'bigint';
    case 'double':
      return typeof value === 'number';
    case 'bool':
      return typeof value === 'boolean';
    case 'uint':
      return value instanceof Uint;
    case 'bytes':
      return value instanceof Uint8Array;
    case 'list':
      return value instanceof ListValue && firstHasType(value, type.params[0]);
    case 'map':
      return value instanceof MapValue;
    case 'timestamp':
      return value instanceof Timestamp;
    case 'duration':
      return value instanceof Duration;
    case 'null':
      return value === null;
    case 'type':
      return value instanceof TypeValue;
    case 'opaque':
    case 'struct':
      return type.name === 'optional_type'
        ? value instanceof Optional
        : value instanceof OpaqueValue && value.typeName === type.name;
    default:
      return true;
  }
}

function firstHasType(list: ListValue, element: CelType | undefined): boolean {
  if (list.size === 0 || element === undefined || element.kind === 'list') return true;
  const first = list.get(0);
  return first instanceof Fault || hasType(first, element);
}

/** The cost of reading text of this size once. */
export function traversal(size: number): number {
  return Math.ceil(size * 0.1);
}

/** The cost of a regular expression of `pattern` code points applied to `text` code points. */
export function regexCost(text: number, pattern: number): number {
  return Math.ceil((1 + text) * 0.1) * Math.ceil(pattern * 0.25);
}

/** A cost in proportion to the size of the first argument. */
export function byFirst(factor = 1): (args: CelValue[]) => number {
  return ([first]) => Math.ceil(sizeOf(first ?? null) * factor * 0.1);
}

/** The cost of a function that creates a list, with `factor` steps for each element of `size`. */
export function listCost(size: number, factor = 1): number {
  return 11 + Math.floor(size * factor);
}

/** Functions whose "no such overload" messages contain neither the function name nor argument types, as in cel-go. */
const unnamed = new Set(['contains', 'startsWith', 'endsWith', 'flatten']);

const numbers = ['double', 'int', 'uint'];
const times = ['google.protobuf.Duration', 'google.protobuf.Timestamp'];
const ordered = [...numbers, ...times, 'bool', 'bytes', 'string'];
/** The supported types of the first operand, by operator. For other types, cel-go names the operator in the message. */
const operands: Readonly<Record<string, readonly string[]>> = {
  '_+_': [...numbers, ...times, 'bytes', 'list', 'string'],
  '_-_': [...numbers, ...times],
  '_*_': numbers,
  '_/_': numbers,
  '_%_': ['int', 'uint'],
  '_<_': ordered,
  '_<=_': ordered,
  '_>_': ordered,
  '_>=_': ordered,
};

/** The error of a call whose argument types match no overload. */
export function noOverload(name: string, args: readonly CelValue[]): Fault {
  if (operands[name]?.includes(typeNameOf(args[0] ?? null)) === false) return new Fault(`no such overload: ${name}`);
  if (!/^[a-z]/.test(name) || unnamed.has(name)) return noSuchOverload;
  if (name === 'size') return new Fault('no such overload: size');
  return new Fault(`no such overload: ${name}(${args.map(typeNameOf).join(', ')})`);
}
