import { isJsonObject, type JsonObject, setOwn } from '../json/json.ts';
import type { PatchBudget } from './patch-budget.ts';
import { PatchError } from './patch-budget.ts';

type MapMerger = (original: JsonObject, patch: JsonObject) => JsonObject;

/**
 * Merges a list of a patch into a list of the document. Scalars form a set. Objects are matched by `mergeKey` (the
 * first match counts) and merged by `mergeMap`; what matches nothing is appended. The caller brings the result into
 * the order of the patch. `path` is for messages.
 */
export function mergeLists(
  original: readonly unknown[],
  patch: readonly unknown[],
  mergeKey: string | undefined,
  mergeMap: MapMerger,
  path: string,
  budget: PatchBudget,
): readonly unknown[] {
  if (patch.length === 0) return original;
  budget.spend(original.length + patch.length);
  if (elementType(original, patch, path) === 'scalar') return [...new Set([...original, ...patch])];
  if (mergeKey === undefined) throw new PatchError('unprocessable', `${path}: cannot merge lists without a merge key`);
  const { deleted, rest, replace } = specialElements(patch as readonly JsonObject[], mergeKey, path);
  if (replace) return withoutDirectives(rest, path) as unknown[];

  const result = (original as readonly JsonObject[]).filter(
    (item) => !Object.hasOwn(item, mergeKey) || !deleted.has(item[mergeKey]),
  );
  const places = new Map<unknown, number>();
  result.forEach((item, place) => {
    if (Object.hasOwn(item, mergeKey) && !places.has(item[mergeKey])) places.set(item[mergeKey], place);
  });
  for (const item of rest) {
    const key = mergeKeyOf(item, mergeKey, path);
    const place = places.get(key);
    const existing = place === undefined ? undefined : result[place];
    if (place !== undefined && existing !== undefined) {
      result[place] = mergeMap(existing, item);
    } else {
      places.set(key, result.length);
      result.push(withoutDirectives(item, path) as JsonObject);
    }
  }
  return result;
}

/**
 * A primitive list without the `values` that `$deleteFromPrimitiveList` names, except those that the patch also adds.
 */
export function deleteValues(
  original: readonly unknown[],
  values: readonly unknown[],
  added: readonly unknown[],
): readonly unknown[] {
  const gone = new Set(values);
  for (const value of added) gone.delete(value);
  return original.some((item) => gone.has(item)) ? original.filter((item) => !gone.has(item)) : original;
}

/** The value of the merge key of a list element. */
export function mergeKeyOf(item: unknown, mergeKey: string, path: string): unknown {
  if (isJsonObject(item) && Object.hasOwn(item, mergeKey)) {
    const value = item[mergeKey];
    if (typeof value !== 'object') return value;
  }
  throw new PatchError('unprocessable', `map: ${path || '.'} does not contain declared merge key: ${mergeKey}`);
}

function specialElements(patch: readonly JsonObject[], mergeKey: string, path: string) {
  const deleted = new Set<unknown>();
  const rest: JsonObject[] = [];
  let replace = false;
  for (const item of patch) {
    if (!Object.hasOwn(item, patchDirective)) rest.push(item);
    else if (patchTypeOf(item[patchDirective], path) === 'delete') deleted.add(mergeKeyOf(item, mergeKey, path));
    else replace = true;
  }
  return { deleted, rest, replace };
}

function elementType(original: readonly unknown[], patch: readonly unknown[], path: string): 'map' | 'scalar' {
  let type: 'map' | 'scalar' | undefined;
  for (const list of [original, patch]) {
    for (const item of list) {
      if (Array.isArray(item)) throw new PatchError('unprocessable', `${path}: lists of lists cannot be merged`);
      const own = isJsonObject(item) ? 'map' : 'scalar';
      if (type !== undefined && type !== own)
        throw new PatchError('unprocessable', `${path}: list elements differ in type`);
      type = own;
    }
  }
  return type ?? 'scalar';
}

/** Key of the directive that applies to a whole map or list element. */
export const patchDirective = '$patch';
/** Key that lists the only keys a map may keep. */
export const retainKeysDirective = '$retainKeys';

const deletePrefix = '$deleteFromPrimitiveList/';
const orderPrefix = '$setElementOrder/';

/** The instructions of one map of a strategic merge patch, separated from its data. */
export interface MapDirectives {
  readonly patch: 'replace' | 'delete' | undefined;
  readonly retainKeys: ReadonlySet<string> | undefined;
  /** Values to remove from a list, by field. */
  readonly deletions: ReadonlyMap<string, readonly unknown[]>;
  /** Required order of the items of a list, by field. */
  readonly orders: ReadonlyMap<string, readonly unknown[]>;
}

const noLists: ReadonlyMap<string, readonly unknown[]> = new Map();
const noDirectives: MapDirectives = { patch: undefined, retainKeys: undefined, deletions: noLists, orders: noLists };

/** True for keys that are instructions rather than data. */
export function isDirective(key: string): boolean {
  return (
    key.charCodeAt(0) === 0x24 &&
    (key === patchDirective ||
      key === retainKeysDirective ||
      key.startsWith(deletePrefix) ||
      key.startsWith(orderPrefix))
  );
}

/** Reads the instructions of a patch map. `path` is for messages. */
export function readDirectives(patch: JsonObject, path: string): MapDirectives {
  const keys = Object.keys(patch).filter(isDirective);
  if (keys.length === 0) return noDirectives;
  const deletions = new Map<string, readonly unknown[]>();
  const orders = new Map<string, readonly unknown[]>();
  for (const key of keys) {
    if (key.startsWith(deletePrefix)) deletions.set(key.slice(deletePrefix.length), listOf(patch[key], key, path));
    else if (key.startsWith(orderPrefix)) orders.set(key.slice(orderPrefix.length), listOf(patch[key], key, path));
  }
  return {
    patch: Object.hasOwn(patch, patchDirective) ? patchTypeOf(patch[patchDirective], path) : undefined,
    retainKeys: Object.hasOwn(patch, retainKeysDirective) ? retainedKeys(patch, path) : undefined,
    deletions,
    orders,
  };
}

/** The value of `$patch`; `merge` is the default behaviour and cannot be specified. */
export function patchTypeOf(value: unknown, path: string): 'replace' | 'delete' {
  if (value === 'replace' || value === 'delete') return value;
  const shown = typeof value === 'string' ? value.slice(0, 40) : typeof value;
  throw new PatchError('unprocessable', `unknown patch type: ${shown} in map: ${path || '.'}`);
}

/**
 * A part of a patch without a counterpart in the document: the same data without instructions and without nulls.
 * `undefined` when the patch deletes the part itself.
 */
export function withoutDirectives(value: unknown, path: string): unknown {
  if (Array.isArray(value)) {
    const items: unknown[] = [];
    for (const item of value) {
      if (isJsonObject(item) && Object.hasOwn(item, patchDirective)) {
        // A lone `$patch: replace` is about the list, not an element of it.
        const patchType = patchTypeOf(item[patchDirective], path);
        if (patchType === 'delete' || Object.keys(item).length === 1) continue;
      }
      items.push(item === null ? null : withoutDirectives(item, `${path}[]`));
    }
    return items;
  }
  if (!isJsonObject(value)) return value;
  const directives = readDirectives(value, path);
  if (directives.patch === 'delete') return undefined;
  const result: JsonObject = {};
  for (const key of Object.keys(value)) {
    const item = value[key];
    if (item === null || isDirective(key)) continue;
    const data = withoutDirectives(item, joinPath(path, key));
    if (data !== undefined) setOwn(result, key, data);
  }
  return result;
}

/** Path of a field, for messages. */
export function joinPath(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}

function listOf(value: unknown, key: string, path: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw new PatchError('malformed', `${joinPath(path, key)} must be a list`);
}

function retainedKeys(patch: JsonObject, path: string): ReadonlySet<string> {
  const retained = new Set<string>();
  for (const key of listOf(patch[retainKeysDirective], retainKeysDirective, path)) {
    if (typeof key !== 'string')
      throw new PatchError('malformed', `${joinPath(path, retainKeysDirective)} must list keys`);
    retained.add(key);
  }
  for (const key of Object.keys(patch)) {
    if (patch[key] !== null && !isDirective(key) && !retained.has(key)) {
      throw new PatchError(
        'unprocessable',
        `${joinPath(path, key)} is set but not among the keys of ${retainKeysDirective}`,
      );
    }
  }
  return retained;
}
