import { Fault } from './base/errors.ts';
import { type CelType, dynType, fieldOf, type ListSemantics } from './base/types.ts';
import {
  type CelValue,
  Duration,
  ListValue,
  MapValue,
  OpaqueValue,
  Optional,
  type Result,
  Timestamp,
  TypeValue,
  Uint,
  ValueList,
} from './base/values.ts';
import { parseDuration, parseTimestamp } from './library/time.ts';

/** A value of an object as parsed from JSON. */
export type JsonValue = unknown;

function isValue(value: object): value is Exclude<CelValue, null | boolean | bigint | number | string> {
  return (
    value instanceof ListValue ||
    value instanceof MapValue ||
    value instanceof OpaqueValue ||
    value instanceof Uint8Array ||
    value instanceof Timestamp ||
    value instanceof Duration ||
    value instanceof Optional ||
    value instanceof Uint ||
    value instanceof TypeValue
  );
}

/**
 * Converts JSON to a CEL value. Nothing is copied: parts are converted when an expression reads them. Numbers without a
 * fraction become int unless the type is double.
 */
export function toCelValue(json: JsonValue, type: CelType = dynType): Result {
  switch (typeof json) {
    case 'string':
      return textValue(json, type);
    case 'number':
      if (type.kind === 'double' || !Number.isInteger(json)) return json;
      return Number.isSafeInteger(json) ? BigInt(json) : json;
    case 'bigint':
      return type.kind === 'double' ? Number(json) : json;
    case 'boolean':
      return json;
    case 'object':
      if (json === null) return null;
      if (Array.isArray(json)) return new JsonList(json, type);
      if (isValue(json)) return json;
      return new JsonMap(json as Readonly<Record<string, unknown>>, type);
    default:
      return new Fault('no such overload');
  }
}

function textValue(text: string, type: CelType): Result {
  if (type.kind === 'timestamp') {
    return parseTimestamp(text) ?? parseTimestamp(`${text}T00:00:00Z`) ?? new Fault(`Invalid date-time: ${text}`);
  }
  if (type.kind === 'duration') return parseDuration(text) ?? new Fault(`Invalid duration ${JSON.stringify(text)}`);
  if (type.kind === 'bytes') return new Uint8Array(Buffer.from(text, 'base64'));
  return text;
}

class JsonMap extends MapValue {
  readonly #object: Readonly<Record<string, unknown>>;
  readonly #type: CelType;
  #keys: readonly string[] | undefined;

  constructor(object: Readonly<Record<string, unknown>>, type: CelType) {
    super();
    this.#object = object;
    this.#type = type;
  }

  #list(): readonly string[] {
    this.#keys ??= Object.keys(this.#object).filter((key) => this.#object[key] !== undefined);
    return this.#keys;
  }

  get size(): number {
    return this.#list().length;
  }

  override get typeName(): string {
    return this.#type.kind === 'struct' ? this.#type.name : 'map';
  }

  #property(key: CelValue): readonly [value: unknown, type: CelType] | undefined {
    if (typeof key !== 'string') return undefined;
    const { fields } = this.#type;
    const field = fieldOf(this.#type, key);
    if (fields !== undefined && field === undefined) return undefined;
    const property = field?.property ?? key;
    if (!Object.hasOwn(this.#object, property)) return undefined;
    return [this.#object[property], field?.type ?? this.#type.params[1] ?? dynType];
  }

  get(key: CelValue): Result | undefined {
    const found = this.#property(key);
    return found === undefined || found[0] === undefined ? undefined : toCelValue(...found);
  }

  override has(key: CelValue): boolean {
    return this.#property(key)?.[0] !== undefined;
  }

  *keys(): Iterable<CelValue> {
    const { fields } = this.#type;
    if (fields === undefined) {
      yield* this.#list();
      return;
    }
    for (const name of fields.keys()) if (this.has(name)) yield name;
  }
}

class JsonList extends ListValue {
  readonly #items: readonly unknown[];
  readonly #element: CelType;
  readonly #semantics: ListSemantics | undefined;

  constructor(items: readonly unknown[], type: CelType) {
    super();
    this.#items = items;
    this.#element = type.params[0] ?? dynType;
    this.#semantics = type.listSemantics;
  }

  get size(): number {
    return this.#items.length;
  }

  get(index: number): Result {
    return toCelValue(this.#items[index], this.#element);
  }

  /** The text that identifies an element: its keys in a list of type `map`, otherwise the whole element. */
  #keyOf(value: Result): string {
    if (this.#semantics?.type !== 'map' || !(value instanceof MapValue)) return keyText(value);
    return JSON.stringify(this.#semantics.keys.map((key) => keyText(value.get(key) ?? null)));
  }

  /** The order of elements is ignored in lists of the types `set` and `map`. */
  override equals(other: ListValue): boolean {
    if (this.#semantics === undefined) return super.equals(other);
    if (this.size !== other.size) return false;
    const byKey = new Map([...other].map((value) => [this.#keyOf(value), value]));
    for (const value of this) {
      const against = byKey.get(this.#keyOf(value));
      if (against === undefined || !new ValueList([value as CelValue]).equals(new ValueList([against as CelValue]))) {
        return false;
      }
    }
    return true;
  }

  /**
   * In a list of type `set`, elements of the second list are added unless they exist. In a list of type `map`, they
   * replace elements with equal keys.
   */
  override join(other: ListValue): ListValue {
    if (this.#semantics === undefined) return super.join(other);
    const result = [...this] as CelValue[];
    const positions = new Map(result.map((value, i) => [this.#keyOf(value), i]));
    for (const value of other) {
      const key = this.#keyOf(value);
      const position = positions.get(key);
      if (position === undefined) {
        positions.set(key, result.length);
        result.push(value as CelValue);
      } else if (this.#semantics.type === 'map') {
        result[position] = value as CelValue;
      }
    }
    return new ValueList(result);
  }
}

function keyText(value: Result): string {
  if (typeof value === 'string') return `s${value}`;
  return JSON.stringify(plainValue(value), (_, part: unknown) => (typeof part === 'bigint' ? `${part}` : part)) ?? '';
}

/** A value as JSON: for messages, audit annotations and keys. */
export function plainValue(value: Result): unknown {
  if (value instanceof Fault) return null;
  if (value instanceof ListValue) return [...value].map(plainValue);
  if (value instanceof MapValue) {
    return Object.fromEntries([...value.keys()].map((key) => [String(key), plainValue(value.get(key) ?? null)]));
  }
  if (value instanceof Uint) return value.value;
  if (value instanceof Optional) return value.value === undefined ? null : plainValue(value.value);
  return typeof value === 'object' && value !== null ? String(value) : value;
}
