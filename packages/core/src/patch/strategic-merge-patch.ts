import { getOwn, isJsonObject, type JsonObject, setOwn } from '../json/json.ts';
import type { Schema } from '../kind/schema.ts';
import { childField, childSchema } from '../kind/schema-walk.ts';
import { checkOrder, checkOrderFormat, mergeKeyOf, orderElements, patchDirective } from './element-order.ts';
import { PatchBudget, PatchError } from './patch-budget.ts';

/** How the list at a field is merged, as its schema says; lists of unknown fields are replaced. */
interface ListRule {
  readonly merge: boolean;
  readonly mergeKey: string | undefined;
  readonly items: Schema<unknown> | undefined;
}

/**
 * Applies a strategic merge patch: see docs/reference/api-rules.md#strategic-merge-patch.
 * The given document is not changed, and unchanged parts are shared with the result. Applying the same patch to the
 * result changes nothing.
 *
 * @throws PatchError `malformed` when the patch or a directive has the wrong shape, `tooLarge` when applying it takes
 *   too much work, `unprocessable` when it contradicts the document, the schema or itself.
 */
export function applyStrategicMergePatch(document: unknown, patch: unknown, schema: Schema<unknown>): unknown {
  if (!isJsonObject(patch)) throw new PatchError('malformed', 'a strategic merge patch must be an object');
  return mergeMaps(isJsonObject(document) ? document : {}, patch, { schema, path: '', budget: new PatchBudget() });
}

/** Position of a merge in the document, and the remaining budget of the whole patch. */
interface Place {
  readonly schema: Schema<unknown> | undefined;
  readonly path: string;
  readonly budget: PatchBudget;
}

function below({ schema, path, budget }: Place, key: string): Place {
  return { schema: schema && childSchema(schema, key), path: joinPath(path, key), budget };
}

function mergeMaps(original: JsonObject, patch: JsonObject, place: Place): JsonObject {
  const { path, budget } = place;
  const directives = readDirectives(patch, path);
  if (directives.patch === 'delete') return {};
  if (directives.patch === 'replace') {
    const { $patch: _, ...rest } = patch;
    return withoutDirectives(rest, path) as JsonObject;
  }
  const result = { ...original };
  const keys = Object.keys(result);
  budget.spendOnKeys(keys.length);
  if (directives.retainKeys) {
    for (const key of keys) if (!directives.retainKeys.has(key)) delete result[key];
  }
  for (const [field, values] of directives.deletions) {
    const list = getOwn(result, field);
    // A value that the patch both deletes and adds is kept in its position, so that applying the patch again changes
    // nothing.
    const added = getOwn(patch, field);
    if (!Array.isArray(list)) continue;
    budget.spend(list.length);
    setOwn(result, field, deleteValues(list, values, Array.isArray(added) ? added : []));
  }
  for (const key of Object.keys(patch)) {
    if (isDirective(key)) continue;
    const replaced = place.schema !== undefined && childField(place.schema, key)?.patchStrategy === 'replace';
    mergeField(result, key, patch[key], below(place, key), replaced);
  }
  applyOrders(result, original, patch, directives, place);
  return result;
}

/**
 * Merges one value of the patch into `result`, which may be modified; with `replaced`, the value replaces the old one.
 */
function mergeField(result: JsonObject, key: string, wanted: unknown, place: Place, replaced: boolean): void {
  if (wanted === null) {
    delete result[key];
    return;
  }
  const current = getOwn(result, key);
  let merged: unknown;
  if (isJsonObject(current) && isJsonObject(wanted) && !replaced) {
    merged = mergeMaps(current, wanted, place);
  } else if (Array.isArray(current) && Array.isArray(wanted) && listRule(place.schema).merge) {
    const { mergeKey, items } = listRule(place.schema);
    const element = { ...place, schema: items };
    const list = mergeLists(current, wanted, mergeKey, (a, b) => mergeMaps(a, b, element), place.path, place.budget);
    // As in Kubernetes, new items precede those that only the server has; a list without new items keeps its order.
    const added = wanted.filter((item) => !isJsonObject(item) || !Object.hasOwn(item, patchDirective));
    merged = added.length === 0 ? list : orderElements(list, added, current, mergeKey, place.path, place.budget);
  } else {
    merged = withoutDirectives(wanted, place.path);
  }
  if (merged === undefined) delete result[key];
  else setOwn(result, key, merged);
}

function applyOrders(
  result: JsonObject,
  document: JsonObject,
  patch: JsonObject,
  directives: MapDirectives,
  place: Place,
): void {
  for (const [field, order] of directives.orders) {
    const { schema, path: where, budget } = below(place, field);
    const { merge, mergeKey } = listRule(schema);
    // A list that is replaced as a whole has the order of the patch.
    if (!merge) continue;
    checkOrderFormat(order, mergeKey, where);
    const patched = getOwn(patch, field);
    if (Array.isArray(patched)) checkOrder(patched, order, mergeKey, where);
    const merged = getOwn(result, field);
    if (!Array.isArray(merged)) continue;
    const before = getOwn(document, field);
    const original = Array.isArray(before) ? before : [];
    setOwn(result, field, orderElements(merged, order, original, mergeKey, where, budget));
  }
}

function listRule(schema: Schema<unknown> | undefined): ListRule {
  const node = schema?.node;
  if (node?.type !== 'list') return { merge: false, mergeKey: undefined, items: undefined };
  const merge = node.patchStrategy === 'merge' || node.patchStrategy === 'merge,retainKeys';
  return { merge, mergeKey: node.patchMergeKey, items: node.items };
}

type MapMerger = (original: JsonObject, patch: JsonObject) => JsonObject;

/**
 * Merges a list of a patch into a list of the document. Scalars form a set. Objects are matched by `mergeKey` (the
 * first match counts) and merged by `mergeMap`; what matches nothing is appended. The caller brings the result into
 * the order of the patch. `path` is for messages.
 */
function mergeLists(
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
function deleteValues(
  original: readonly unknown[],
  values: readonly unknown[],
  added: readonly unknown[],
): readonly unknown[] {
  const gone = new Set(values);
  for (const value of added) gone.delete(value);
  return original.some((item) => gone.has(item)) ? original.filter((item) => !gone.has(item)) : original;
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

/** Key that lists the only keys a map may keep. */
const retainKeysDirective = '$retainKeys';

const deletePrefix = '$deleteFromPrimitiveList/';
const orderPrefix = '$setElementOrder/';

/** The instructions of one map of a strategic merge patch, separated from its data. */
interface MapDirectives {
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
function isDirective(key: string): boolean {
  return (
    key.charCodeAt(0) === 0x24 &&
    (key === patchDirective ||
      key === retainKeysDirective ||
      key.startsWith(deletePrefix) ||
      key.startsWith(orderPrefix))
  );
}

/** Reads the instructions of a patch map. `path` is for messages. */
function readDirectives(patch: JsonObject, path: string): MapDirectives {
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
function patchTypeOf(value: unknown, path: string): 'replace' | 'delete' {
  if (value === 'replace' || value === 'delete') return value;
  const shown = typeof value === 'string' ? value.slice(0, 40) : typeof value;
  throw new PatchError('unprocessable', `unknown patch type: ${shown} in map: ${path || '.'}`);
}

/**
 * A part of a patch without a counterpart in the document: the same data without instructions and without nulls.
 * `undefined` when the patch deletes the part itself.
 */
function withoutDirectives(value: unknown, path: string): unknown {
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
function joinPath(path: string, key: string): string {
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
