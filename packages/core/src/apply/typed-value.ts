import { getOwn, isJsonObject, type JsonObject, jsonText, setOwn } from '../json/json.ts';
import type { SchemaNode } from '../kind/schema.ts';
import { jsonFields, type ListNode, messageNode } from '../kind/schema-walk.ts';
import { FieldSet, fieldElement, keyElement, type PathElement, pathText, valueElement } from './field-set.ts';

/**
 * The schema of a value for a merge. Undefined: the value has no schema, and its type is deduced from its content:
 * objects are granular, lists atomic.
 */
export type NodeType = SchemaNode | undefined;

/** Whether a value of this type is atomic: an atomic value has one owner, any other value has one owner per item. */
export function isAtomic(type: NodeType): boolean {
  if (type === undefined || type.type === 'list') return type !== undefined && listKeys(type) === undefined;
  return (type.type === 'map' || type.type === 'message') && type.mapType === 'atomic';
}

const granularLists = new WeakMap<ListNode, readonly string[] | null>();

/** The keys of the elements of a list: none for a set, undefined for an atomic list. */
function listKeys(list: ListNode): readonly string[] | undefined {
  let keys = granularLists.get(list);
  if (keys === undefined) {
    keys = keysOf(list) ?? null;
    granularLists.set(list, keys);
  }
  return keys ?? undefined;
}

/** A list without a list type follows its patch strategy, as in Kubernetes. */
function keysOf(list: ListNode): readonly string[] | undefined {
  const { listType, listMapKeys, patchMergeKey, patchStrategy } = list;
  if (listType === 'map') return listMapKeys ?? (patchMergeKey === undefined ? undefined : [patchMergeKey]);
  if (listType !== undefined) return listType === 'set' ? [] : undefined;
  if (!patchStrategy?.startsWith('merge')) return undefined;
  return patchMergeKey === undefined ? [] : [patchMergeKey];
}

/** The type of a field, key or element; undefined where the schema does not describe it. */
export function childType(type: NodeType, element: PathElement): NodeType {
  if (type === undefined) return undefined;
  if (type.type === 'list') return openType(type.items.node);
  return element.startsWith('f:') ? fieldType(type, element.slice(2)) : undefined;
}

export function fieldType(type: NodeType, name: string): NodeType {
  if (type?.type === 'map') return openType(type.values.node);
  return type?.type === 'message' ? openType(jsonFields(type).get(name)?.schema.node) : undefined;
}

/** Types that permit any value. */
const openTypes: ReadonlySet<string> = new Set(['any', 'raw', 'union']);

function openType(type: NodeType): NodeType {
  return type !== undefined && openTypes.has(type.type) ? undefined : type;
}

/**
 * An object without empty lists that are always present, such as the rules of a role: no client has set them.
 * Kubernetes stores null there.
 */
export function withoutFilledLists(type: NodeType, value: JsonObject): JsonObject {
  if (type?.type !== 'message') return value;
  const result: JsonObject = {};
  for (const [name, item] of Object.entries(value)) {
    const field = jsonFields(type).get(name);
    const isFilled = field?.whenAbsent === 'zero' && Array.isArray(item) && item.length === 0;
    if (!isFilled) setOwn(result, name, isJsonObject(item) ? withoutFilledLists(fieldType(type, name), item) : item);
  }
  return result;
}

/** Whether a field is declared by its name, unlike the key of a map. */
export function isNamedField(type: NodeType, name: string): boolean {
  return type?.type === 'message' && jsonFields(type).has(name);
}

/** The value when it is an object, whatever its type is. */
export function asMap(value: unknown): JsonObject | undefined {
  return isJsonObject(value) ? value : undefined;
}

export function asList(value: unknown): readonly unknown[] | undefined {
  return Array.isArray(value) ? value : undefined;
}

/** A list whose elements have owners of their own. */
export function isGranularList(type: NodeType): type is ListNode {
  return type?.type === 'list' && listKeys(type) !== undefined;
}

/** How a list identifies an element. @throws TypedValueError when it cannot be named */
export function elementOf(list: ListNode, item: unknown): PathElement {
  const keys = listKeys(list) ?? [];
  if (keys.length === 0) {
    if (isJsonObject(item)) throw new TypedValueError("associative list without keys has an element that's a map type");
    if (Array.isArray(item)) throw new TypedValueError('not supported: associative list with lists as elements');
    if (item === null)
      throw new TypedValueError("associative list without keys has an element that's an explicit null");
    return valueElement(item);
  }
  if (item === null) throw new TypedValueError('associative list with keys may not have a null element');
  if (!isJsonObject(item)) throw new TypedValueError('associative list with keys may not have non-map elements');
  const pairs: [string, unknown][] = [];
  for (const key of keys) {
    const value = getOwn(item, key) ?? keyDefault(list, key);
    if (value !== undefined) pairs.push([key, value]);
  }
  if (pairs.length === 0) {
    throw new TypedValueError(
      `associative list with keys has an element that omits all key fields [${keys.map((key) => JSON.stringify(key)).join(' ')}] ` +
        "(and doesn't have default values for any key fields)",
    );
  }
  return keyElement(pairs);
}

function keyDefault(list: ListNode, key: string): unknown {
  const message = messageNode(list.items);
  return message && jsonFields(message).get(key)?.default;
}

/** A value that does not have its type. */
export class TypedValueError extends Error {}

/** Maximum number of errors in one response. */
const maxErrors = 100;

/**
 * Checks an object that a client applies. It is stricter than decoding: an undeclared field is an error, and so is an
 * element that occurs twice. Returns messages with paths.
 */
export function typeErrors(type: SchemaNode, value: JsonObject): string[] {
  const errors: string[] = [];
  check(type, value, '', errors, true);
  const form = type.type === 'message' ? type.json : undefined;
  if (form !== undefined && errors.length === 0) {
    form.complete(value, (path) => {
      if (errors.length < maxErrors) errors.push(`.${path}: field not declared in schema`);
    });
  }
  return errors;
}

/** Why a value does not have the type, without a check of its items; undefined when it has the type. */
function mismatch(type: SchemaNode, value: unknown): string | undefined {
  switch (type.type) {
    case 'message':
    case 'map':
      return isJsonObject(value) ? undefined : `expected map, got ${shown(value)}`;
    case 'list':
      return Array.isArray(value) ? undefined : `expected list, got ${shown(value)}`;
    case 'int32':
    case 'int64':
    case 'double':
      return typeof value === 'number' || typeof value === 'bigint'
        ? undefined
        : `expected numeric (int or float), got ${typeof value}`;
    case 'bool':
      return typeof value === 'boolean' ? undefined : `expected boolean, got ${shown(value)}`;
    case 'quantity':
    case 'intOrString':
      return typeof value === 'object' ? `expected any scalar, got ${shown(value)}` : undefined;
    default:
      return typeof value === 'string' ? undefined : `expected string, got ${shown(value)}`;
  }
}

/**
 * Adds the type errors of a value and its items to `errors`. With `isClosed`, undeclared fields are errors. Below a
 * schema that was converted from JSON Schema only `metadata` is closed, because that schema does not state which
 * objects allow undeclared fields.
 */
function check(type: NodeType, value: unknown, path: string, errors: string[], isClosed: boolean): void {
  if (type === undefined || value === null || errors.length >= maxErrors) return;
  const why = mismatch(type, value);
  if (why !== undefined) errors.push(path === '' ? why : `${path}: ${why}`);
  else if (type.type === 'list') checkList(type, value as readonly unknown[], path, errors, isClosed);
  else if (type.type === 'message' || type.type === 'map') {
    const map = value as JsonObject;
    const form = type.type === 'message' ? type.json : undefined;
    for (const name of Object.keys(map)) {
      const closed = form === undefined ? isClosed : name === 'metadata';
      const isDeclared = type.type === 'map' || jsonFields(type).has(name);
      if (isDeclared) check(fieldType(type, name), map[name], `${path}.${name}`, errors, closed);
      else if (closed && errors.length < maxErrors) errors.push(`${path}.${name}: field not declared in schema`);
    }
  }
}

function checkList(type: ListNode, list: readonly unknown[], path: string, errors: string[], isClosed: boolean): void {
  const items = openType(type.items.node);
  const granular = isGranularList(type);
  const seen = new Set<PathElement>();
  for (const [index, item] of list.entries()) {
    if (errors.length >= maxErrors) return;
    let at = `[${index}]`;
    if (granular) {
      let element: PathElement;
      try {
        element = elementOf(type, item);
      } catch (error) {
        if (!(error instanceof TypedValueError)) throw error;
        errors.push(`${path}: element ${index}: ${error.message}`);
        return;
      }
      at = pathText([element]);
      if (seen.has(element)) errors.push(`${path}: duplicate entries for key ${at}`);
      seen.add(element);
    }
    check(items, item, `${path}${at}`, errors, isClosed);
  }
}

function shown(value: unknown): string {
  return jsonText(value).slice(0, 100);
}

/** Every leaf and every item of a value: what its author owns. */
export function fieldsOf(type: NodeType, value: unknown): FieldSet {
  const set = new FieldSet();
  const map = asMap(value);
  if (map !== undefined) collectMap(type, map, set);
  return set;
}

/** Whether a value is owned as a whole. */
function isLeaf(type: NodeType, value: unknown): boolean {
  if (isJsonObject(value)) return isAtomic(type);
  return !(Array.isArray(value) && isGranularList(type));
}

function collectMap(type: NodeType, map: JsonObject, set: FieldSet): void {
  for (const name of Object.keys(map)) {
    const value = map[name];
    if (value === undefined) continue;
    const element = fieldElement(name);
    const child = collect(fieldType(type, name), value);
    set.attach(element, child);
    const isEmptyMap = isJsonObject(value) && Object.keys(value).length === 0;
    if (child === undefined || isEmptyMap || !isNamedField(type, name)) set.add(element);
  }
}

/** The fields of a value, or undefined for a leaf. */
function collect(type: NodeType, value: unknown): FieldSet | undefined {
  if (isLeaf(type, value)) return undefined;
  const set = new FieldSet();
  if (isJsonObject(value)) collectMap(type, value, set);
  else if (isGranularList(type)) collectList(type, value as readonly unknown[], set);
  return set;
}

function collectList(type: ListNode, list: readonly unknown[], set: FieldSet): void {
  for (const [element, items] of indexList(type, list)) {
    set.add(element);
    if (items.length === 1) set.attach(element, collect(childType(type, element), items[0]));
  }
}

/** The elements of a list by their identity, in order. Several elements with one identity are duplicates. */
export function indexList(type: ListNode, list: readonly unknown[]): Map<PathElement, unknown[]> {
  const index = new Map<PathElement, unknown[]>();
  for (const item of list) {
    let element: PathElement;
    try {
      element = elementOf(type, item);
    } catch (error) {
      // A stored element without an identity has no owner.
      if (error instanceof TypedValueError) continue;
      throw error;
    }
    const items = index.get(element);
    if (items === undefined) index.set(element, [item]);
    else items.push(item);
  }
  return index;
}

/** The set, extended by those ancestors of its members that are declared fields. */
export function withNamedFields(type: NodeType, set: FieldSet): FieldSet {
  const result = new FieldSet();
  for (const element of set.memberElements()) result.add(element);
  for (const [element, child] of set.childElements()) {
    if (element.startsWith('f:') && isNamedField(type, element.slice(2))) result.add(element);
    result.attach(element, withNamedFields(childType(type, element), child));
  }
  return result;
}

/** A set in which values that are atomic now are owned as a whole: the schema may have changed since it was made. */
export function reconciled(type: NodeType, set: FieldSet): FieldSet {
  let result: FieldSet | undefined;
  for (const [element, child] of set.childElements()) {
    const below = childType(type, element);
    const kept = below === undefined ? child : isAtomic(below) ? undefined : reconciled(below, child);
    if (kept === child) continue;
    if (result === undefined) {
      result = new FieldSet();
      for (const member of set.memberElements()) result.add(member);
      for (const [other, otherSet] of set.childElements()) result.attach(other, otherSet);
    }
    if (kept === undefined) {
      result = result.recursiveDifference(FieldSet.of([element]));
      result.add(element);
    } else result.attach(element, kept);
  }
  return result ?? set;
}

/** The value without the items in `set`. An object or list that becomes empty is replaced by null. */
export function removeItems(type: NodeType, value: unknown, set: FieldSet): unknown {
  const map = asMap(value);
  if (map !== undefined) {
    if (isAtomic(type)) return null;
    const result: JsonObject = {};
    let size = 0;
    for (const name of Object.keys(map)) {
      const element = fieldElement(name);
      if (set.has(element)) continue;
      const child = set.child(element);
      setOwn(result, name, child === undefined ? map[name] : removeItems(fieldType(type, name), map[name], child));
      size++;
    }
    return size === 0 ? null : result;
  }
  const list = asList(value);
  if (list === undefined) return value;
  if (!isGranularList(type)) return null;
  const result: unknown[] = [];
  for (const item of list) {
    const element = elementOf(type, item);
    if (set.has(element)) continue;
    const child = set.child(element);
    result.push(child === undefined ? item : removeItems(childType(type, element), item, child));
  }
  return result.length === 0 ? null : result;
}
