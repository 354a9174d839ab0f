import { isJsonObject, type JsonObject, setOwn } from '../json/json.ts';
import { arrayIndex, parsePointer } from './json-pointer.ts';
import { PatchBudget, PatchError } from './patch-budget.ts';

/** Limits of one JSON patch: see docs/reference/api-rules.md#limits-of-a-request. */
export interface JsonPatchLimits {
  /** Maximum number of operations; a patch with more is `tooLarge`. Default 10,000. */
  readonly maxOperations?: number;
  /** Total bytes that `copy` operations may add, measured as JSON; more is `unprocessable`. Default 3 MiB. */
  readonly maxCopiedBytes?: number;
}

type Container = JsonObject | unknown[];

/**
 * Applies a JSON patch (RFC 6902) and returns the new document; the old one stays as it is and unchanged parts are
 * shared. All operations apply or none does; null has no operations. Where RFC 6902 refuses an operation that
 * Kubernetes accepts, it is accepted: see docs/reference/api-rules.md#patches.
 *
 * @throws PatchError `malformed` when `operations` is not a list of objects, `tooLarge` above the limits on
 *   operations and on work, `unprocessable` for everything that does not fit the document.
 */
export function applyJsonPatch(document: unknown, operations: unknown, limits: JsonPatchLimits = {}): unknown {
  if (operations === null) return document;
  if (!Array.isArray(operations)) throw new PatchError('malformed', 'a JSON patch must be a list of operations');
  const max = limits.maxOperations ?? 10_000;
  if (operations.length > max) {
    throw new PatchError('tooLarge', `the patch has ${operations.length} operations, at most ${max} are allowed`);
  }
  if (!operations.every(isJsonObject))
    throw new PatchError('malformed', 'every operation of a JSON patch must be an object');
  const run = new JsonPatchRun(document, limits.maxCopiedBytes ?? 3 * 1024 * 1024);
  operations.forEach((operation: JsonObject, i) => {
    try {
      run.apply(operation);
    } catch (error) {
      if (error instanceof PatchError) throw new PatchError(error.kind, `operation ${i}: ${error.message}`);
      throw error;
    }
  });
  return run.document;
}

/**
 * The state while operations are applied. Containers are copied before their first change, and the copies are recorded,
 * so that ten thousand operations on one list copy it once.
 */
class JsonPatchRun {
  document: unknown;
  readonly #ours = new Set<Container>();
  readonly #budget = new PatchBudget();
  #copyBudget: number;

  constructor(document: unknown, copyBudget: number) {
    this.document = document;
    this.#copyBudget = copyBudget;
  }

  apply(operation: JsonObject): void {
    const path = pointerOf(operation, 'path');
    switch (operation['op']) {
      case 'add':
        this.#add(path, operation['value'] ?? null);
        break;
      case 'remove':
        this.#remove(path);
        break;
      case 'replace':
        this.#replace(path, operation['value'] ?? null);
        break;
      case 'move':
        this.#move(pointerOf(operation, 'from'), path);
        break;
      case 'copy':
        this.#add(path, this.#clone(this.#readOrNull(pointerOf(operation, 'from'))));
        break;
      case 'test':
        if (!jsonEquals(this.#readOrNull(path), operation['value'] ?? null, this.#budget))
          throw new PatchError('unprocessable', 'test failed');
        break;
      default:
        throw new PatchError('unprocessable', 'op must be one of add, remove, replace, move, copy, test');
    }
  }

  #read(path: readonly string[]): unknown {
    let value = this.document;
    for (const token of path) value = child(value, token);
    return value;
  }

  /** As {@link #read}, but a key that an existing map does not have reads as null. */
  #readOrNull(path: readonly string[]): unknown {
    const last = path.at(-1);
    if (last === undefined) return this.document;
    const parent = this.#read(path.slice(0, -1));
    return isJsonObject(parent) && !Object.hasOwn(parent, last) ? null : child(parent, last);
  }

  #add(path: readonly string[], value: unknown): void {
    const last = path.at(-1);
    if (last === undefined) {
      this.document = value;
      return;
    }
    const parent = this.#parentForChange(path);
    if (Array.isArray(parent)) parent.splice(this.#movedFrom(parent, arrayIndex(last, parent.length, true)), 0, value);
    else setOwn(parent, last, value);
  }

  #replace(path: readonly string[], value: unknown): void {
    const last = path.at(-1);
    if (last === undefined) {
      this.document = value;
      return;
    }
    const parent = this.#parentForChange(path);
    if (Array.isArray(parent)) parent[arrayIndex(last, parent.length, false)] = value;
    else setOwn(parent, last, value);
  }

  #remove(path: readonly string[]): void {
    const last = path.at(-1);
    if (last === undefined) throw new PatchError('unprocessable', 'the whole document cannot be removed');
    this.#read(path);
    const parent = this.#parentForChange(path);
    if (Array.isArray(parent)) parent.splice(this.#movedFrom(parent, arrayIndex(last, parent.length, false)), 1);
    else delete parent[last];
  }

  /** Returns `index` after the cost of moving the elements behind it was charged to the budget. */
  #movedFrom(list: readonly unknown[], index: number): number {
    this.#budget.spendOnMoves(list.length - index);
    return index;
  }

  #move(from: readonly string[], to: readonly string[]): void {
    const value = this.#read(from);
    if (from.every((token, i) => to[i] === token)) {
      if (from.length === to.length) return;
      throw new PatchError('unprocessable', 'a value cannot be moved into itself');
    }
    this.#remove(from);
    this.#add(to, value);
  }

  /** The container that holds the path's last token, after every container on the path was copied. */
  #parentForChange(path: readonly string[]): Container {
    let container = this.#own(this.document);
    this.document = container;
    for (const token of path.slice(0, -1)) {
      const next = this.#own(child(container, token));
      if (Array.isArray(container)) container[arrayIndex(token, container.length, false)] = next;
      else setOwn(container, token, next);
      container = next;
    }
    return container;
  }

  #own(value: unknown): Container {
    if (!Array.isArray(value) && !isJsonObject(value))
      throw new PatchError('unprocessable', 'the path leads through a scalar');
    if (this.#ours.has(value)) return value;
    const copy = Array.isArray(value) ? value.slice() : { ...value };
    if (Array.isArray(value)) this.#budget.spend(value.length);
    else this.#budget.spendOnKeys(Object.keys(value).length);
    this.#ours.add(copy);
    return copy;
  }

  /**
   * A deep copy, whose cost is charged to the limit on copied bytes. It must be deep, because the source may be a copy
   * that changes later.
   */
  #clone(value: unknown): unknown {
    if (Array.isArray(value)) {
      this.#pay(2 + value.length);
      return value.map((item) => this.#clone(item));
    }
    if (!isJsonObject(value)) {
      this.#pay(typeof value === 'string' ? value.length + 2 : 4);
      return value;
    }
    this.#pay(2);
    const copy: JsonObject = {};
    for (const key of Object.keys(value)) {
      this.#pay(key.length + 4);
      setOwn(copy, key, this.#clone(value[key]));
    }
    return copy;
  }

  #pay(bytes: number): void {
    this.#copyBudget -= bytes;
    if (this.#copyBudget < 0) throw new PatchError('unprocessable', 'copy operations add more data than one patch may');
  }
}

function child(container: unknown, token: string): unknown {
  if (Array.isArray(container)) return container[arrayIndex(token, container.length, false)];
  if (!isJsonObject(container) || !Object.hasOwn(container, token)) {
    throw new PatchError('unprocessable', `nothing at ${JSON.stringify(token.slice(0, 256))}`);
  }
  return container[token];
}

function pointerOf(operation: JsonObject, field: 'path' | 'from'): readonly string[] {
  const pointer = operation[field];
  if (typeof pointer !== 'string') throw new PatchError('unprocessable', `${field} must be a JSON pointer`);
  return parsePointer(pointer);
}

/**
 * Equality of JSON values: the order of keys does not matter, `-0` equals 0. Comparing keys is charged to the budget.
 */
function jsonEquals(a: unknown, b: unknown, budget: PatchBudget): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, i) => jsonEquals(item, b[i], budget));
  }
  if (!isJsonObject(a) || !isJsonObject(b)) return false;
  const keys = Object.keys(a);
  budget.spendOnKeys(keys.length);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && jsonEquals(a[key], b[key], budget));
}
