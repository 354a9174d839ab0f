import { isJsonObject, type JsonObject, jsonText, parseJsonText } from '../json/json.ts';

/**
 * One step of a path in the form that FieldsV1 gives it: `f:NAME` a field, `k:{"name":"x"}` an element of a list by its
 * keys, `v:"x"` an element of a set, `i:0` an index. The JSON after `k:` and `v:` is canonical, so that equal elements
 * are equal texts.
 */
export type PathElement = string;

export function fieldElement(name: string): PathElement {
  return `f:${name}`;
}

export function valueElement(value: unknown): PathElement {
  return `v:${jsonText(value)}`;
}

/** The path element of a list item with these keys, which may be given in any order. */
export function keyElement(keys: readonly (readonly [name: string, value: unknown])[]): PathElement {
  const sorted = keys.length < 2 ? keys : [...keys].sort(([a], [b]) => (a < b ? -1 : 1));
  return `k:{${sorted.map(([name, value]) => `${JSON.stringify(name)}:${jsonText(value)}`).join(',')}}`;
}

/** The error for a text that is not valid FieldsV1. */
export class FieldSetError extends Error {}

/**
 * The canonical form of an element that a client has written, or undefined for types of later versions, which are
 * ignored. @throws FieldSetError
 */
function readElement(text: string): PathElement | undefined {
  if (text.length < 2) throw new FieldSetError('key must be 2 characters long:');
  if (text[1] !== ':') throw new FieldSetError(`missing colon: ${text}`);
  const rest = text.slice(2);
  switch (text[0]) {
    case 'f':
      return text;
    case 'v':
      return valueElement(jsonOf(text));
    case 'k': {
      const keys = jsonOf(text);
      if (!isJsonObject(keys)) throw new FieldSetError(`expected an object: ${text}`);
      return keyElement(Object.entries(keys));
    }
    case 'i':
      if (!/^[+-]?\d{1,15}$/.test(rest)) throw new FieldSetError(`expected an integer: ${text}`);
      return `i:${Number(rest)}`;
    default:
      return undefined;
  }
}

/** A cache of the values of elements: the same few keys occur in the owners of all objects. */
const values = new Map<string, unknown>();
const maxValues = 4096;
const maxTextOfValue = 256;

/** The JSON in an element. @throws FieldSetError */
function jsonOf(element: string): unknown {
  const known = values.get(element);
  if (known !== undefined) return known;
  let value: unknown;
  try {
    value = parseJsonText(element.slice(2));
  } catch (error) {
    throw new FieldSetError(`expected JSON: ${element.slice(2)}`, { cause: error });
  }
  if (element.length > maxTextOfValue) return value;
  if (values.size >= maxValues) values.clear();
  values.set(element, value);
  return value;
}

/** An element as messages show it: `.name`, `[name="x"]`, `[="x"]`, `[0]`. */
function elementText(element: PathElement): string {
  const rest = element.slice(2);
  switch (element[0]) {
    case 'f':
      return `.${rest}`;
    case 'k': {
      const keys = Object.entries(jsonOf(element) as JsonObject);
      return `[${keys.map(([name, value]) => `${name}=${jsonText(value)}`).join(',')}]`;
    }
    case 'v':
      return `[=${rest}]`;
    default:
      return `[${rest}]`;
  }
}

/** A path as messages show it: `.spec.containers[name="web"].image`. */
export function pathText(path: readonly PathElement[]): string {
  return path.map(elementText).join('');
}

const typeOrder = 'fkvi';

function compareValues(a: unknown, b: unknown): number {
  if (typeof a === typeof b && (typeof a === 'number' || typeof a === 'string')) return a < (b as typeof a) ? -1 : 1;
  const [left, right] = [jsonText(a), jsonText(b)];
  return left < right ? -1 : 1;
}

function compareKeys(a: JsonObject, b: JsonObject): number {
  const left = Object.entries(a);
  const right = Object.entries(b);
  for (let i = 0; i < left.length && i < right.length; i++) {
    const [nameA, valueA] = left[i] as [string, unknown];
    const [nameB, valueB] = right[i] as [string, unknown];
    if (nameA !== nameB) return nameA < nameB ? -1 : 1;
    if (valueA !== valueB) return compareValues(valueA, valueB);
  }
  return left.length - right.length;
}

/** Elements in the order in which Kubernetes writes them: fields, keys, values, indexes. */
function sortElements(elements: PathElement[]): PathElement[] {
  if (elements.length < 2) return elements;
  if (elements.every((element) => element[0] === 'f')) return elements.sort();
  const read = elements.map((element) => ({
    element,
    type: typeOrder.indexOf(element[0] ?? ''),
    value: element[0] === 'f' ? element : jsonOf(element),
  }));
  read.sort((a, b) => {
    if (a.type !== b.type) return a.type - b.type;
    return isJsonObject(a.value) && isJsonObject(b.value)
      ? compareKeys(a.value, b.value)
      : compareValues(a.value, b.value);
  });
  return read.map(({ element }) => element);
}

/**
 * A set of paths of fields, as a tree. A path may be a member without its descendants, and the reverse. Sets are
 * changed only while they are built; operations give new sets that share parts with their operands.
 */
export class FieldSet {
  #members: Set<PathElement> | undefined;
  #children: Map<PathElement, FieldSet> | undefined;

  get empty(): boolean {
    return this.#members === undefined && this.#children === undefined;
  }

  add(element: PathElement): void {
    this.#members ??= new Set();
    this.#members.add(element);
  }

  /** Sets the members below an element that has none yet; an empty set is ignored. */
  attach(element: PathElement, child: FieldSet | undefined): void {
    if (child === undefined || child.empty) return;
    this.#children ??= new Map();
    this.#children.set(element, child);
  }

  has(element: PathElement): boolean {
    return this.#members?.has(element) ?? false;
  }

  hasPath(path: readonly PathElement[]): boolean {
    let set: FieldSet | undefined = this;
    for (const element of path.slice(0, -1)) set = set?.child(element);
    return set?.has(path.at(-1) ?? '') ?? false;
  }

  child(element: PathElement): FieldSet | undefined {
    return this.#children?.get(element);
  }

  /** The elements that have members below them, each with the set of these. */
  childElements(): Iterable<readonly [PathElement, FieldSet]> {
    return this.#children ?? [];
  }

  memberElements(): Iterable<PathElement> {
    return this.#members ?? [];
  }

  static of(...paths: readonly (readonly PathElement[])[]): FieldSet {
    let all = new FieldSet();
    for (const path of paths) {
      let set = new FieldSet();
      set.add(path.at(-1) ?? '');
      for (const element of path.slice(0, -1).reverse()) {
        const parent = new FieldSet();
        parent.attach(element, set);
        set = parent;
      }
      all = all.union(set);
    }
    return all;
  }

  #clone(): FieldSet {
    const copy = new FieldSet();
    if (this.#members) copy.#members = new Set(this.#members);
    if (this.#children) copy.#children = new Map(this.#children);
    return copy;
  }

  union(other: FieldSet): FieldSet {
    if (other.empty || other === this) return this;
    if (this.empty) return other;
    const result = this.#clone();
    for (const element of other.memberElements()) result.add(element);
    for (const [element, set] of other.childElements()) {
      const own = this.child(element);
      result.attach(element, own === undefined ? set : own.union(set));
    }
    return result;
  }

  intersection(other: FieldSet): FieldSet {
    const result = new FieldSet();
    for (const element of this.memberElements()) if (other.has(element)) result.add(element);
    for (const [element, set] of this.childElements()) {
      const theirs = other.child(element);
      if (theirs !== undefined) result.attach(element, set.intersection(theirs));
    }
    return result;
  }

  /** This set without the members of `other`. Descendants of removed members remain. */
  difference(other: FieldSet): FieldSet {
    return this.#without(other, false);
  }

  /** This set without the members of `other` and all their descendants. */
  recursiveDifference(other: FieldSet): FieldSet {
    return this.#without(other, true);
  }

  #without(other: FieldSet, recursive: boolean): FieldSet {
    if (this.empty || other.empty) return this;
    const result = new FieldSet();
    let isSame = true;
    for (const element of this.memberElements()) {
      if (other.has(element)) isSame = false;
      else result.add(element);
    }
    for (const [element, set] of this.childElements()) {
      const theirs = other.child(element);
      const isRemoved = recursive && other.has(element);
      const rest = isRemoved ? undefined : theirs === undefined ? set : set.#without(theirs, recursive);
      if (rest !== set) isSame = false;
      result.attach(element, rest);
    }
    return isSame ? this : result;
  }

  /** The paths of all members, in the order of {@link toFieldsV1}, parents first. */
  *paths(prefix: readonly PathElement[] = []): Generator<readonly PathElement[]> {
    for (const element of sortElements([...this.memberElements()])) yield [...prefix, element];
    for (const element of sortElements([...(this.#children?.keys() ?? [])])) {
      yield* (this.child(element) as FieldSet).paths([...prefix, element]);
    }
  }

  /** The set as FieldsV1, the format of `metadata.managedFields`. */
  toFieldsV1(): JsonObject {
    return this.#write(false);
  }

  #write(isMember: boolean): JsonObject {
    const result: JsonObject = {};
    if (isMember && !this.empty) result['.'] = {};
    const elements = new Set(this.#members);
    for (const element of this.#children?.keys() ?? []) elements.add(element);
    for (const element of sortElements([...elements])) {
      const child = this.child(element);
      result[element] = child === undefined ? {} : child.#write(this.has(element));
    }
    return result;
  }

  /** Parses FieldsV1, the format of `metadata.managedFields`. @throws FieldSetError */
  static fromFieldsV1(fields: unknown): FieldSet {
    return readSet(fields).set;
  }
}

function readSet(fields: unknown): { readonly set: FieldSet; readonly isMember: boolean } {
  const set = new FieldSet();
  let isMember = false;
  if (!isJsonObject(fields)) throw new FieldSetError('expected an object');
  for (const key of Object.keys(fields)) {
    if (key === '.') {
      isMember = true;
      continue;
    }
    const element = key.startsWith('f:') ? key : readElement(key);
    if (element === undefined) continue;
    const below = readSet(fields[key]);
    if (below.isMember) set.add(element);
    set.attach(element, below.set);
  }
  return { set, isMember: isMember || set.empty };
}
