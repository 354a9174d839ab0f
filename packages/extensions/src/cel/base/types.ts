/** The kinds of CEL types. `struct` has named fields, `opaque` is known by its name, `param` is a type variable. */
export type CelTypeKind =
  | 'any'
  | 'bool'
  | 'bytes'
  | 'double'
  | 'duration'
  | 'dyn'
  | 'error'
  | 'int'
  | 'list'
  | 'map'
  | 'null'
  | 'opaque'
  | 'param'
  | 'string'
  | 'struct'
  | 'timestamp'
  | 'type'
  | 'uint';

/** The semantics of a list with `x-kubernetes-list-type`, which determine its equality and concatenation. */
export type ListSemantics = { readonly type: 'set' } | { readonly type: 'map'; readonly keys: readonly string[] };

/** The type of an expression or a variable. */
export interface CelType {
  readonly kind: CelTypeKind;
  /** The name of the type in messages and in the result of `type(x)`. */
  readonly name: string;
  readonly params: readonly CelType[];
  /** The fields of a struct, by their names in expressions. */
  readonly fields?: ReadonlyMap<string, CelField>;
  readonly listSemantics?: ListSemantics;
  /** Maximum size of a string, list or map, from its schema. Cost estimates depend on it. */
  readonly maxElements?: number;
  /** Minimum number of bytes of a value of a schema type in JSON. */
  readonly minBytes?: number;
}

export interface CelField {
  /** The name of the property in the JSON value. */
  readonly property: string;
  readonly type: CelType;
}

/** Keywords of CEL. A property with the name of a keyword is the field `__NAME__` in expressions. */
export const keywords = new Set(
  (
    'true false null in as break const continue else for function if import let loop package namespace return var ' +
    'void while'
  ).split(' '),
);

/** The struct field with the given name in an expression. A keyword also finds the field `__NAME__`. */
export function fieldOf({ fields }: CelType, name: string): CelField | undefined {
  return fields?.get(name) ?? (keywords.has(name) ? fields?.get(`__${name}__`) : undefined);
}

function simple(kind: CelTypeKind, name: string = kind): CelType {
  return { kind, name, params: [] };
}

export const boolType = simple('bool');
export const bytesType = simple('bytes');
export const doubleType = simple('double');
export const durationType = simple('duration', 'google.protobuf.Duration');
export const dynType = simple('dyn');
export const errorType = simple('error', '!error!');
export const intType = simple('int');
export const nullType = simple('null', 'null_type');
export const stringType = simple('string');
export const timestampType = simple('timestamp', 'google.protobuf.Timestamp');
export const typeType = simple('type');
export const uintType = simple('uint');

export function listType(element: CelType, listSemantics?: ListSemantics): CelType {
  return { kind: 'list', name: 'list', params: [element], ...(listSemantics ? { listSemantics } : {}) };
}

export function mapType(key: CelType, value: CelType): CelType {
  return { kind: 'map', name: 'map', params: [key, value] };
}

export function opaqueType(name: string, ...params: CelType[]): CelType {
  return { kind: 'opaque', name, params };
}

/** A struct type. Without `fields`, only functions can use its values. */
export function structType(name: string, fields?: ReadonlyMap<string, CelField>): CelType {
  return { kind: 'struct', name, params: [], ...(fields ? { fields } : {}) };
}

export function paramType(name: string): CelType {
  return simple('param', name);
}

export function optionalType(value: CelType): CelType {
  return opaqueType('optional_type', value);
}

export function typeTypeOf(type: CelType): CelType {
  return { kind: 'type', name: 'type', params: [type] };
}

export function unwrapOptional(type: CelType): CelType | undefined {
  return type.kind === 'opaque' && type.name === 'optional_type' ? type.params[0] : undefined;
}

const shownNames: Partial<Record<CelTypeKind, string>> = {
  duration: 'duration',
  null: 'null',
  timestamp: 'timestamp',
};

/** The text of a type in messages of the type checker. */
export function formatType(type: CelType): string {
  const name = shownNames[type.kind] ?? type.name;
  return type.params.length === 0 ? name : `${name}(${type.params.map(formatType).join(', ')})`;
}

/** The text of a type in messages about results, and in the result of `type(x)`. */
export function typeText(type: CelType): string {
  return type.params.length === 0 ? type.name : `${type.name}(${type.params.map(typeText).join(', ')})`;
}

export function isDynOrError({ kind }: CelType): boolean {
  return kind === 'dyn' || kind === 'any' || kind === 'error';
}

export function sameType(a: CelType, b: CelType): boolean {
  return (
    a === b ||
    (a.kind === b.kind &&
      a.name === b.name &&
      a.params.length === b.params.length &&
      a.params.every((param, i) => sameType(param, b.params[i] ?? errorType)))
  );
}

function isEqualOrLessSpecific(a: CelType, b: CelType): boolean {
  if (a.kind === 'dyn' || a.kind === 'any' || a.kind === 'param') return true;
  if (b.kind === 'dyn' || b.kind === 'any' || b.kind === 'param') return false;
  if (a.kind !== b.kind) return false;
  if (a.kind === 'type') return true;
  return (
    a.name === b.name &&
    a.params.length === b.params.length &&
    a.params.every((param, i) => isEqualOrLessSpecific(param, b.params[i] ?? errorType))
  );
}

export function mostGeneral(a: CelType, b: CelType): CelType {
  return isEqualOrLessSpecific(a, b) ? a : b;
}

const nullable = new Set<CelTypeKind>(['any', 'duration', 'null', 'opaque', 'struct', 'timestamp']);

/** The types that the checker has found for type variables so far. */
export class Substitutions {
  readonly #types = new Map<string, CelType>();
  /**
   * What the current assignment has changed. A failed assignment is undone in place: a copy of the map for each attempt
   * would make the check of an expression quadratic.
   */
  readonly #changes: { readonly name: string; readonly former: CelType | undefined }[] = [];

  /**
   * Whether a value of type `b` can be assigned to type `a`. If so, the types that this implies for type variables are
   * recorded; otherwise nothing changes.
   */
  assign(a: CelType, b: CelType): boolean {
    return this.assignAll([a], [b]);
  }

  /** Like {@link assign}, for several values: all are assigned, or none. */
  assignAll(a: readonly CelType[], b: readonly CelType[]): boolean {
    if (a.length !== b.length) return false;
    const assigned = a.every((type, i) => this.#assignable(type, b[i] ?? errorType));
    if (!assigned) this.#undo();
    this.#changes.length = 0;
    return assigned;
  }

  #set(name: string, type: CelType): void {
    this.#changes.push({ name, former: this.#types.get(name) });
    this.#types.set(name, type);
  }

  /** The latest change is undone first, because one assignment may change a variable several times. */
  #undo(): void {
    for (const { name, former } of this.#changes.reverse()) {
      if (former === undefined) this.#types.delete(name);
      else this.#types.set(name, former);
    }
  }

  #assignable(a: CelType, b: CelType): boolean {
    if (b.kind === 'param') {
      const [valid, known] = this.#bind(a, b);
      if (valid || known) return valid;
    }
    if (a.kind === 'param') return this.#bind(b, a)[0];
    if (isDynOrError(a) || isDynOrError(b)) return true;
    if (a.kind === 'null') return nullable.has(b.kind);
    if (b.kind === 'null') return nullable.has(a.kind);
    if (a.kind === 'type') return b.kind === 'type';
    if (a.kind !== b.kind || a.name !== b.name || a.params.length !== b.params.length) return false;
    return a.params.every((param, i) => this.#assignable(param, b.params[i] ?? errorType));
  }

  /**
   * Tries to bind a type variable to a type. Returns whether this is valid, and whether the variable was bound already.
   */
  #bind(value: CelType, variable: CelType): [valid: boolean, known: boolean] {
    if (sameType(value, variable)) return [true, true];
    const known = this.#types.get(variable.name);
    if (known !== undefined) {
      if (sameType(value, known)) return [true, true];
      if (!this.#assignable(value, known)) return [false, true];
      const general = mostGeneral(value, known);
      if (!this.#contains(variable, general)) this.#set(variable.name, general);
      return [true, true];
    }
    if (this.#contains(variable, value)) return [false, false];
    this.#set(variable.name, value);
    return [true, false];
  }

  #contains(variable: CelType, type: CelType): boolean {
    if (sameType(variable, type)) return true;
    if (type.kind !== 'param') return type.params.some((param) => this.#contains(variable, param));
    const known = this.#types.get(type.name);
    return known !== undefined && this.#contains(variable, known);
  }

  /** Replaces type variables in a type by the types bound to them. With `freeToDyn`, unbound variables become dyn. */
  apply(type: CelType, freeToDyn = false): CelType {
    if (type.kind === 'param') {
      const known = this.#types.get(type.name);
      if (known !== undefined) return this.apply(known, freeToDyn);
      return freeToDyn ? dynType : type;
    }
    if (type.params.length === 0) return type;
    return { ...type, params: type.params.map((param) => this.apply(param, freeToDyn)) };
  }
}
