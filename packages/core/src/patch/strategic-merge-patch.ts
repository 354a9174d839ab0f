import { getOwn, isJsonObject, type JsonObject, setOwn } from '../json/json.ts';
import type { Schema } from '../kind/schema.ts';
import { childField, childSchema } from '../kind/schema-walk.ts';
import { checkOrder, checkOrderFormat, orderElements } from './element-order.ts';
import {
  deleteValues,
  isDirective,
  joinPath,
  type MapDirectives,
  mergeLists,
  patchDirective,
  readDirectives,
  withoutDirectives,
} from './merge-list.ts';
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

/** Where in the document a merge is, and what the whole patch may still cost. */
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
    // What the patch also adds stays where it is, so that a second application finds nothing to do.
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
    merged = added.length === 0 ? list : orderElements(list, added, current, mergeKey, place.path);
  } else {
    merged = withoutDirectives(wanted, place.path);
  }
  if (merged === undefined) delete result[key];
  else setOwn(result, key, merged);
}

function applyOrders(
  result: JsonObject,
  original: JsonObject,
  patch: JsonObject,
  directives: MapDirectives,
  place: Place,
): void {
  for (const [field, order] of directives.orders) {
    const { schema, path: where, budget } = below(place, field);
    const { merge, mergeKey } = listRule(schema);
    // The order of a list that is replaced whole is the patch's own.
    if (!merge) continue;
    checkOrderFormat(order, mergeKey, where);
    const patched = getOwn(patch, field);
    if (Array.isArray(patched)) checkOrder(patched, order, mergeKey, where);
    const merged = getOwn(result, field);
    if (!Array.isArray(merged)) continue;
    const before = getOwn(original, field);
    budget.spend(merged.length + order.length);
    setOwn(result, field, orderElements(merged, order, Array.isArray(before) ? before : [], mergeKey, where));
  }
}

function listRule(schema: Schema<unknown> | undefined): ListRule {
  const node = schema?.node;
  if (node?.type !== 'list') return { merge: false, mergeKey: undefined, items: undefined };
  const merge = node.patchStrategy === 'merge' || node.patchStrategy === 'merge,retainKeys';
  return { merge, mergeKey: node.patchMergeKey, items: node.items };
}
