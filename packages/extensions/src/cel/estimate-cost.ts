import type { Comprehension, Expression } from './ast.ts';
import type { CelType } from './base/types.ts';
import { stringSize } from './base/values.ts';
import type { Checked } from './checker.ts';
import {
  type CallCost,
  callCost,
  fixedSize,
  greater,
  type Operand,
  plus,
  type Size,
  times,
  unionOfSizes,
  unknownSize,
  unlimited,
} from './library/call-costs.ts';

/** The location of a value within the root value. Its type contains the maximum size of the value. */
interface Place {
  /** The type of the value; undefined for values outside of the root value. */
  readonly type: CelType | undefined;
}

/** The sizes of the keys and values of a map or list that an expression creates. */
interface EntrySize {
  readonly list: boolean;
  readonly key: Size;
  readonly value: Size;
}

interface Local {
  readonly place: Place | undefined;
  readonly size: Size | undefined;
  readonly entries: EntrySize | undefined;
}

type Call = Extract<Expression, { kind: 'call' }>;

const scalars = new Set(['bool', 'double', 'duration', 'int', 'timestamp', 'uint']);

function isScalar(type: CelType): boolean {
  if (scalars.has(type.kind)) return true;
  const [inner] = type.params;
  return type.kind === 'opaque' && type.name === 'optional_type' && inner !== undefined && isScalar(inner);
}

function literalSize(node: Expression): Size | undefined {
  switch (node.kind) {
    case 'literal': {
      const { value } = node;
      if (typeof value === 'string') return fixedSize(BigInt(stringSize(value)));
      return fixedSize(value instanceof Uint8Array ? BigInt(value.length) : 1n);
    }
    case 'list':
      return fixedSize(BigInt(node.elements.length));
    case 'map':
      return fixedSize(BigInt(node.entries.length));
    default:
      return undefined;
  }
}

/** The type of a struct field, or of the keys, values or items of a map or list. */
function partOf(type: CelType | undefined, step: string): CelType | undefined {
  if (type?.kind === 'list') return step === '@items' || step === '@values' ? type.params[0] : undefined;
  if (type?.kind !== 'map') return type?.fields?.get(step)?.type;
  if (step === '@keys') return type.params[0];
  return step === '@items' || step === '@values' ? type.params[1] : undefined;
}

const nothingYet: Size = { min: unlimited, max: 0n };

class Estimator {
  readonly #checked: Checked;
  readonly #root: CelType;
  readonly #costs = new Map<Expression, bigint>();
  readonly #places = new Map<Expression, Place | undefined>();
  readonly #sizes = new Map<Expression, Size>();
  readonly #entries = new Map<Expression, EntrySize>();
  readonly #locals = new Map<string, Local[]>();

  constructor(checked: Checked, root: CelType) {
    this.#checked = checked;
    this.#root = root;
  }

  /** Costs are cached by node, because a macro may contain the same node twice. */
  cost(node: Expression): bigint {
    const known = this.#costs.get(node);
    if (known !== undefined) return known;
    const cost = this.#cost(node);
    this.#costs.set(node, cost);
    return cost;
  }

  #cost(node: Expression): bigint {
    switch (node.kind) {
      case 'literal':
        return 0n;
      case 'ident': {
        const local = this.#local(node.name);
        this.#places.set(node, local ? local.place : { type: this.#root });
        return 1n;
      }
      case 'select': {
        if (this.#checked.variableOf(node) !== undefined) {
          this.#places.set(node, { type: this.#root });
          return 1n;
        }
        const operand = this.cost(node.operand);
        if (node.test) return operand;
        this.#places.set(node, this.#step(node.operand, node.field));
        const { kind } = this.#checked.typeOf(node.operand);
        return plus(operand, kind === 'map' || kind === 'struct' || kind === 'param' ? 1n : 0n);
      }
      case 'call':
        return this.#call(node);
      case 'list': {
        let cost = 10n;
        let value = node.elements.length === 0 ? fixedSize(0n) : nothingYet;
        for (const element of node.elements) {
          cost = plus(cost, this.cost(element.value));
          value = unionOfSizes(value, this.#sizeOf(element.value));
        }
        this.#entries.set(node, { list: true, key: fixedSize(1n), value });
        return cost;
      }
      case 'map': {
        let cost = 30n;
        let key = node.entries.length === 0 ? fixedSize(0n) : nothingYet;
        let value = key;
        for (const entry of node.entries) {
          cost = plus(cost, this.cost(entry.key), this.cost(entry.value));
          key = unionOfSizes(key, this.#sizeOf(entry.key));
          value = unionOfSizes(value, this.#sizeOf(entry.value));
        }
        this.#entries.set(node, { list: false, key, value });
        return cost;
      }
      default:
        return this.#isBind(node) ? this.#bind(node, node) : this.#fold(node, node);
    }
  }

  #call(node: Call): bigint {
    const { args } = node;
    const name = this.#checked.functionOf(node) ?? node.name;
    const target = name === node.name ? node.target : undefined;
    if (name === 'dyn' && args[0]) {
      const cost = this.cost(args[0]);
      this.#copySizes(node, args[0]);
      return plus(cost, 1n);
    }
    const argCosts = args.map((arg) => this.cost(arg));
    const operands = args.map((arg) => this.#operand(arg));
    if (name === '_&&_' || name === '_||_') return plus(...argCosts);
    if (name === '_?_:_') return this.#conditional(node, argCosts);
    const targetCost = target ? this.cost(target) : 0n;
    const receiver = target && this.#operand(target);
    let most = 0n;
    let size: Size | undefined;
    const overloads = this.#checked.overloadsOf(node);
    // The checker resolves no overload for optional selections. They cost 1.
    if (overloads.length === 0) most = 1n;
    for (const overload of overloads) {
      const call: CallCost = callCost(name, overload, receiver, operands);
      most = greater(most, call.cost);
      if (call.size) size = size ? unionOfSizes(size, call.size) : call.size;
      const kind = overload.args[0]?.kind;
      if (name === '_+_' && (kind === 'string' || kind === 'bytes' || kind === 'list')) this.#joinEntries(node, args);
      if (name === '_[_]' && args[0] && (kind === 'list' || kind === 'map')) {
        size = this.#entriesOf(args[0])?.value;
        this.#places.set(node, this.#step(args[0], kind === 'list' ? '@items' : '@values'));
      }
      size ??= this.#knownSize(node);
    }
    if (size) this.#sizes.set(node, size);
    return plus(targetCost, ...argCosts, most);
  }

  #conditional(node: Call, [condition = 0n, then = 0n, otherwise = 0n]: readonly bigint[]): bigint {
    const [, x, y] = node.args;
    if (x && y) {
      this.#sizes.set(node, unionOfSizes(this.#sizeOf(x), this.#sizeOf(y)));
      this.#joinEntries(node, [x, y]);
    }
    return plus(condition, greater(then, otherwise));
  }

  #joinEntries(node: Expression, [x, y]: readonly Expression[]): void {
    const first = x && this.#entriesOf(x);
    const second = y && this.#entriesOf(y);
    if (!(first && second)) return;
    const key = unionOfSizes(first.key, second.key);
    this.#entries.set(node, { list: first.list, key, value: unionOfSizes(first.value, second.value) });
  }

  #isBind({ range, condition }: Comprehension): boolean {
    const never = condition.kind === 'literal' && condition.value === false;
    return never && range.kind === 'list' && range.elements.length === 0;
  }

  #bind(node: Expression, { range, initial, accumulator, result }: Comprehension): bigint {
    const cost = plus(this.cost(range), this.cost(initial));
    this.#pushLocal(accumulator, initial);
    const total = plus(cost, this.cost(result));
    this.#pop(accumulator);
    this.#copySizes(node, result);
    return total;
  }

  #fold(node: Expression, fold: Comprehension): bigint {
    const { range, initial, accumulator, variable, valueVariable } = fold;
    const outside = plus(this.cost(range), this.cost(initial));
    this.#pushLocal(accumulator, initial);
    const isList = this.#entriesOf(range)?.list ?? this.#checked.typeOf(range).kind === 'list';
    if (valueVariable === undefined) this.#pushIterated(variable, range, isList ? '@items' : '@keys');
    else {
      this.#pushIterated(variable, range, isList ? '@indices' : '@keys');
      this.#pushIterated(valueVariable, range, isList ? '@items' : '@values');
    }
    const each = plus(this.cost(fold.condition), this.cost(fold.step));
    this.#pop(variable);
    if (valueVariable !== undefined) this.#pop(valueVariable);
    const result = this.cost(fold.result);
    this.#pop(accumulator);
    const count = this.#sizeOf(range);
    if (initial.kind === 'literal') this.#setSize(node, this.#knownSize(initial));
    else if (initial.kind === 'list' || initial.kind === 'map') {
      this.#sizes.set(node, count);
      const entries = this.#entriesOf(fold.step);
      if (entries) this.#entries.set(node, entries);
    }
    return plus(outside, result, times(count.max, each));
  }

  #local(name: string): Local | undefined {
    return this.#locals.get(name)?.at(-1);
  }

  #push(name: string, local: Local): void {
    const known = this.#locals.get(name);
    if (known) known.push(local);
    else this.#locals.set(name, [local]);
  }

  #pop(name: string): void {
    this.#locals.get(name)?.pop();
  }

  #pushLocal(name: string, value: Expression): void {
    const entries = this.#entriesOf(value);
    this.#push(name, { place: this.#placeOf(value), size: this.#knownSize(value), entries });
  }

  #pushIterated(name: string, range: Expression, step: string): void {
    const entries = this.#entriesOf(range);
    const size = step === '@keys' || step === '@indices' ? entries?.key : entries?.value;
    this.#push(name, { place: this.#step(range, step), size, entries: undefined });
  }

  #placeOf(node: Expression): Place | undefined {
    const local = node.kind === 'ident' ? this.#local(node.name) : undefined;
    return local ? local.place : this.#places.get(node);
  }

  /** A part of a value outside of the root value has the type of the root itself, as in cel-go. */
  #step(from: Expression, step: string): Place {
    const place = this.#placeOf(from);
    return { type: place ? partOf(place.type, step) : this.#root };
  }

  #operand(node: Expression): Operand {
    const type = this.#checked.typeOf(node);
    const [elementType] = type.params;
    const place = this.#placeOf(node);
    const inPlace = place && partOf(place.type, '@items');
    return {
      ...{ type, size: this.#sizeOf(node) },
      literal: node.kind === 'literal' ? node.value : undefined,
      element: elementType && { type: elementType, size: inPlace ? sizeOfType(inPlace) : unknownSize },
    };
  }

  #sizeOf(node: Expression): Size {
    return this.#knownSize(node) ?? unknownSize;
  }

  #knownSize(node: Expression): Size | undefined {
    const known = this.#sizes.get(node) ?? literalSize(node);
    if (known !== undefined) return known;
    const type = this.#placeOf(node)?.type;
    if (type !== undefined) {
      const size = sizeOfType(type);
      this.#sizes.set(node, size);
      return size;
    }
    if (isScalar(this.#checked.typeOf(node))) return fixedSize(1n);
    return node.kind === 'ident' ? this.#local(node.name)?.size : undefined;
  }

  #entriesOf(node: Expression): EntrySize | undefined {
    return this.#entries.get(node) ?? (node.kind === 'ident' ? this.#local(node.name)?.entries : undefined);
  }

  #setSize(node: Expression, size: Size | undefined): void {
    if (size) this.#sizes.set(node, size);
  }

  #copySizes(to: Expression, from: Expression): void {
    this.#setSize(to, this.#knownSize(from));
    const entries = this.#entriesOf(from);
    if (entries) this.#entries.set(to, entries);
  }
}

/** The size range of a value. Only strings, bytes, lists and maps have a maximum size. */
function sizeOfType({ maxElements = 0 }: CelType): Size {
  return { min: 0n, max: BigInt(maxElements) };
}

/**
 * The greatest cost that an evaluation can have when the variables are parts of a value of type `root`. Source:
 * `checker/cost.go` of cel-go, with the rules of k8s.io/apiserver.
 */
export function estimateCost(checked: Checked, root: CelType): bigint {
  return new Estimator(checked, root).cost(checked.root);
}
