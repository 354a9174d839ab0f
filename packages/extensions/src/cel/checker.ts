import { type Comprehension, type Expression, qualifiedName } from './ast.ts';
import { CelCompileError, type CelIssue } from './base/errors.ts';
import type { Functions, Overload } from './base/functions.ts';
import * as t from './base/types.ts';

/** The result of type checking an expression. */
export interface Checked {
  readonly root: Expression;
  readonly type: t.CelType;
  typeOf(node: Expression): t.CelType;
  /** For a call: the overloads that match the argument types. */
  overloadsOf(node: Expression): readonly Overload[];
  /**
   * For an identifier or a chain such as `a.b`: the variable or type with this name; undefined for a field selection.
   */
  variableOf(node: Expression): string | undefined;
  /** For a call such as `a.b.c()`: the function with this qualified name; undefined for a method call. */
  functionOf(node: Expression): string | undefined;
}

type Scope = { readonly names: ReadonlyMap<string, t.CelType>; readonly outer: Scope } | undefined;

const a = t.paramType('A');
const b = t.paramType('B');

/** Types whose names can be used in expressions. */
export const namedTypes: ReadonlyMap<string, t.CelType> = new Map(
  [
    ...[t.boolType, t.bytesType, t.doubleType, t.durationType, t.intType, t.listType(a), t.mapType(a, b)],
    ...[t.nullType, t.stringType, t.timestampType, t.typeType, t.uintType, t.optionalType(a)],
    ...[t.opaqueType('net.IP'), t.opaqueType('net.CIDR')],
  ].map((type) => [type.name, type]),
);

class Checker {
  readonly #variables: ReadonlyMap<string, t.CelType>;
  readonly #functions: Functions;
  readonly #known = new t.Substitutions();
  readonly #types = new Map<Expression, t.CelType>();
  readonly #overloads = new Map<Expression, readonly Overload[]>();
  readonly #variableNames = new Map<Expression, string>();
  readonly #functionNames = new Map<Expression, string>();
  readonly issues: CelIssue[] = [];
  #scope: Scope;
  #free = 0;

  constructor(variables: ReadonlyMap<string, t.CelType>, functions: Functions) {
    this.#variables = variables;
    this.#functions = functions;
  }

  result(root: Expression): Checked {
    return {
      root,
      type: this.#known.apply(this.check(root), true),
      typeOf: (node) => this.#known.apply(this.#types.get(node) ?? t.errorType, true),
      overloadsOf: (node) => this.#overloads.get(node) ?? [],
      variableOf: (node) => this.#variableNames.get(node),
      functionOf: (node) => this.#functionNames.get(node),
    };
  }

  #issue(node: Expression, message: string): t.CelType {
    this.issues.push({ position: node.position, message });
    return t.errorType;
  }

  #freeType(): t.CelType {
    return t.paramType(`_var${this.#free++}`);
  }

  /** A macro may contain the same node twice; it is checked once. */
  check(node: Expression): t.CelType {
    const known = this.#types.get(node);
    if (known !== undefined) return known;
    const type = this.#check(node);
    this.#types.set(node, type);
    return type;
  }

  #check(node: Expression): t.CelType {
    switch (node.kind) {
      case 'literal':
        return literalType(node.value);
      case 'ident':
        return this.#lookup(node, node.name) ?? this.#undeclared(node, node.name);
      case 'select': {
        const name = qualifiedName(node);
        const variable = name === undefined ? undefined : this.#lookup(node, name);
        if (variable !== undefined) return variable;
        const type = this.#field(node, node.operand, node.field, false);
        return node.test ? t.boolType : type;
      }
      case 'call':
        return this.#call(node, node);
      case 'list': {
        let element: t.CelType | undefined;
        for (const { value, optional } of node.elements) {
          element = this.#join(element, this.#elementType(value, optional));
        }
        return t.listType(element ?? this.#freeType());
      }
      case 'map': {
        let key: t.CelType | undefined;
        let value: t.CelType | undefined;
        for (const entry of node.entries) {
          key = this.#join(key, this.check(entry.key));
          value = this.#join(value, this.#elementType(entry.value, entry.optional));
        }
        return t.mapType(key ?? this.#freeType(), value ?? this.#freeType());
      }
      default:
        return this.#fold(node, node);
    }
  }

  #undeclared(node: Expression, name: string): t.CelType {
    return this.#issue(node, `undeclared reference to '${name}' (in container '')`);
  }

  #lookup(node: Expression, name: string): t.CelType | undefined {
    for (let scope = this.#scope; scope; scope = scope.outer) {
      const type = scope.names.get(name);
      if (type !== undefined) return this.#named(node, name, type);
    }
    const variable = this.#variables.get(name);
    if (variable !== undefined) return this.#named(node, name, variable);
    const type = namedTypes.get(name);
    return type && this.#named(node, name, t.typeTypeOf(type));
  }

  #named(node: Expression, name: string, type: t.CelType): t.CelType {
    this.#variableNames.set(node, name);
    return type;
  }

  #elementType(node: Expression, optional: boolean): t.CelType {
    const type = this.check(node);
    if (!optional) return type;
    const inner = t.unwrapOptional(type);
    if (inner) return inner;
    if (t.isDynOrError(type)) return type;
    return this.#mismatch(node, t.optionalType(type), type);
  }

  #mismatch(node: Expression, expected: t.CelType, found: t.CelType): t.CelType {
    const shown = [expected, found].map((type) => t.formatType(this.#known.apply(type)));
    return this.#issue(node, `expected type '${shown[0]}' but found '${shown[1]}'`);
  }

  /** The element type of a list or map literal. A later check rejects literals with elements of several types. */
  #join(previous: t.CelType | undefined, current: t.CelType): t.CelType {
    if (previous === undefined) return current;
    return this.#known.assign(previous, current) ? t.mostGeneral(previous, current) : t.dynType;
  }

  #field(node: Expression, operand: Expression, field: string, optional: boolean): t.CelType {
    const operandType = this.#known.apply(this.check(operand));
    const inner = t.unwrapOptional(operandType);
    const target = inner ?? operandType;
    const type = this.#fieldType(node, target, field);
    return inner || optional ? t.optionalType(type) : type;
  }

  #fieldType(node: Expression, target: t.CelType, field: string): t.CelType {
    if (target.kind === 'map') return target.params[1] ?? t.dynType;
    if (target.kind === 'struct') {
      if (target.fields === undefined) return this.#issue(node, `unexpected failed resolution of '${target.name}'`);
      return t.fieldOf(target, field)?.type ?? this.#issue(node, `undefined field '${field}'`);
    }
    if (target.kind === 'param') this.#known.assign(t.dynType, target);
    else if (!t.isDynOrError(target)) {
      this.#issue(node, `type '${t.formatType(target)}' does not support field selection`);
    }
    return t.dynType;
  }

  #call(node: Expression, call: Extract<Expression, { kind: 'call' }>): t.CelType {
    const { name, target, args } = call;
    if (name === '_?._') {
      const [operand, field] = args;
      if (operand && field?.kind === 'literal') return this.#field(node, operand, String(field.value), true);
    }
    const prefix = target && qualifiedName(target);
    const whole = prefix === undefined ? undefined : this.#functions.find(`${prefix}.${name}`);
    for (const arg of args) this.check(arg);
    if (whole) {
      this.#functionNames.set(node, `${prefix}.${name}`);
      return this.#resolve(node, `${prefix}.${name}`, whole, undefined, args);
    }
    if (target) this.check(target);
    const overloads = this.#functions.find(name);
    return overloads ? this.#resolve(node, name, overloads, target, args) : this.#undeclared(node, name);
  }

  #resolve(
    node: Expression,
    name: string,
    overloads: readonly Overload[],
    target: Expression | undefined,
    args: readonly Expression[],
  ): t.CelType {
    if (name === '_&&_' || name === '_||_') {
      for (const arg of args) {
        const type = this.check(arg);
        if (!this.#known.assign(type, t.boolType)) this.#mismatch(arg, t.boolType, type);
      }
      return t.boolType;
    }
    const types = (target ? [target, ...args] : args).map((arg) => this.check(arg));
    const matching: Overload[] = [];
    let result: t.CelType | undefined;
    for (const overload of overloads) {
      if (overload.member !== (target !== undefined)) continue;
      const [type = t.errorType, ...params] = this.#fresh([overload.result, ...overload.args]);
      if (!this.#known.assignAll(types, params)) continue;
      matching.push(overload);
      const found = this.#known.apply(type);
      if (result === undefined) result = found;
      else if (result.kind !== 'dyn' && !t.sameType(result, found)) result = t.dynType;
    }
    if (result !== undefined) {
      this.#overloads.set(node, matching);
      return result;
    }
    const shown = types.map((type) => t.formatType(this.#known.apply(type, true)));
    const receiver = target ? `${shown.shift()}.` : '';
    return this.#issue(node, `found no matching overload for '${name}' applied to '${receiver}(${shown.join(', ')})'`);
  }

  /** The types of an overload with new type variables for one call. */
  #fresh(types: readonly t.CelType[]): readonly t.CelType[] {
    const fresh = new Map<string, t.CelType>();
    const replace = (type: t.CelType): t.CelType => {
      if (type.kind === 'param') {
        const known = fresh.get(type.name) ?? this.#freeType();
        fresh.set(type.name, known);
        return known;
      }
      return type.params.length === 0 ? type : { ...type, params: type.params.map(replace) };
    };
    return types.map(replace);
  }

  #fold(node: Expression, fold: Comprehension): t.CelType {
    const range = this.#known.apply(this.check(fold.range));
    const accumulator = this.check(fold.initial);
    const [first, second] = this.#iterated(fold.range, range, fold.valueVariable !== undefined);
    const outer = this.#scope;
    const accuScope: Scope = { names: new Map([[fold.accumulator, accumulator]]), outer };
    const names = new Map([[fold.variable, first]]);
    if (fold.valueVariable !== undefined) names.set(fold.valueVariable, second);
    this.#scope = { names, outer: accuScope };
    const condition = this.check(fold.condition);
    if (!this.#known.assign(t.boolType, condition)) this.#mismatch(fold.condition, t.boolType, condition);
    const step = this.check(fold.step);
    if (!this.#known.assign(accumulator, step)) this.#mismatch(fold.step, accumulator, step);
    this.#scope = accuScope;
    const result = this.check(fold.result);
    this.#scope = outer;
    this.#types.set(node, result);
    return this.#known.apply(result);
  }

  /** The types of the iteration variables of a macro. */
  #iterated(node: Expression, range: t.CelType, two: boolean): readonly [t.CelType, t.CelType] {
    const [first = t.dynType, second = t.dynType] = range.params;
    if (range.kind === 'list') return two ? [t.intType, first] : [first, first];
    if (range.kind === 'map') return [first, second];
    if (range.kind === 'param') this.#known.assign(t.dynType, range);
    else if (!t.isDynOrError(range)) {
      const shown = t.formatType(range);
      this.#issue(
        node,
        `expression of type '${shown}' cannot be range of a comprehension (must be list, map, or dynamic)`,
      );
      return [t.errorType, t.errorType];
    }
    return [t.dynType, t.dynType];
  }
}

function literalType(value: unknown): t.CelType {
  switch (typeof value) {
    case 'string':
      return t.stringType;
    case 'bigint':
      return t.intType;
    case 'number':
      return t.doubleType;
    case 'boolean':
      return t.boolType;
    default:
      return value === null ? t.nullType : value instanceof Uint8Array ? t.bytesType : t.uintType;
  }
}

/** Finds the types of all parts. Throws a {@link CelCompileError} that lists every error. */
export function checkExpression(
  source: string,
  root: Expression,
  variables: ReadonlyMap<string, t.CelType>,
  functions: Functions,
): Checked {
  const checker = new Checker(variables, functions);
  const checked = checker.result(root);
  if (checker.issues.length > 0) throw new CelCompileError(source, checker.issues);
  return checked;
}
