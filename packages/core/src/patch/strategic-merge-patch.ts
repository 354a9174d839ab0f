import type { Schema } from '../kind/schema.ts';
import { childSchema } from '../kind/schema-walk.ts';
import { checkOrder, checkOrderFormat, orderElements } from './element-order.ts';
import { getOwn, isJsonObject, type JsonObject, setOwn } from './json-value.ts';
import { isDirective, joinPath, type MapDirectives, readDirectives, withoutDirectives } from './merge-directives.ts';
import { deleteValues, mergeLists } from './merge-list.ts';
import { PatchError } from './patch-error.ts';

/** How the list at a field is merged, as its schema says; lists of unknown fields are replaced. */
interface ListRule {
  readonly merge: boolean;
  readonly mergeKey: string | undefined;
  readonly items: Schema<unknown> | undefined;
}

/**
 * Applies a strategic merge patch (api-conventions 11.4): a merge patch whose lists are merged as the schema says and whose
 * `$` keys are instructions. The document stays as it is and unchanged parts are shared. Applying the same patch
 * to the result changes nothing more.
 *
 * Two decisions where the wire leaves room: without `$setElementOrder` matched elements keep their place and new ones are appended;
 * a value that a patch both deletes from a primitive list and adds to it is there afterwards.
 *
 * @throws PatchError `malformed` when the patch or an instruction has the wrong shape, `unprocessable` when it contradicts
 *   the document, the schema or itself.
 */
export function applyStrategicMergePatch(document: unknown, patch: unknown, schema: Schema<unknown>): unknown {
  if (!isJsonObject(patch)) throw new PatchError('malformed', 'a strategic merge patch must be an object');
  return mergeMaps(isJsonObject(document) ? document : {}, patch, schema, '');
}

function mergeMaps(original: JsonObject, patch: JsonObject, schema: Schema<unknown> | undefined, path: string): JsonObject {
  const directives = readDirectives(patch, path);
  if (directives.patch === 'delete') return {};
  if (directives.patch === 'replace') {
    const { $patch: _, ...rest } = patch;
    return withoutDirectives(rest, path) as JsonObject;
  }
  const result = { ...original };
  if (directives.retainKeys) {
    for (const key of Object.keys(result)) if (!directives.retainKeys.has(key)) delete result[key];
  }
  for (const [field, values] of directives.deletions) {
    const list = getOwn(result, field);
    // What the patch also adds stays where it is, so that a second application finds nothing to do.
    const added = getOwn(patch, field);
    if (Array.isArray(list)) setOwn(result, field, deleteValues(list, values, Array.isArray(added) ? added : []));
  }
  for (const key of Object.keys(patch)) {
    if (isDirective(key)) continue;
    mergeField(result, key, patch[key], schema && childSchema(schema, key), joinPath(path, key));
  }
  applyOrders(result, original, patch, directives, schema, path);
  return result;
}

/** Merges one value of the patch into `result`, which is ours to change. */
function mergeField(result: JsonObject, key: string, wanted: unknown, schema: Schema<unknown> | undefined, path: string): void {
  if (wanted === null) {
    delete result[key];
    return;
  }
  const current = getOwn(result, key);
  let merged: unknown;
  if (isJsonObject(current) && isJsonObject(wanted)) {
    merged = mergeMaps(current, wanted, schema, path);
  } else if (Array.isArray(current) && Array.isArray(wanted) && listRule(schema).merge) {
    const { mergeKey, items } = listRule(schema);
    merged = mergeLists(current, wanted, mergeKey, (a, b) => mergeMaps(a, b, items, path), path);
  } else {
    merged = withoutDirectives(wanted, path);
  }
  if (merged === undefined) delete result[key];
  else setOwn(result, key, merged);
}

function applyOrders(
  result: JsonObject,
  original: JsonObject,
  patch: JsonObject,
  directives: MapDirectives,
  schema: Schema<unknown> | undefined,
  path: string,
): void {
  for (const [field, order] of directives.orders) {
    const { merge, mergeKey } = listRule(schema && childSchema(schema, field));
    // The order of a list that is replaced whole is the patch's own.
    if (!merge) continue;
    const where = joinPath(path, field);
    checkOrderFormat(order, mergeKey, where);
    const patched = getOwn(patch, field);
    if (Array.isArray(patched)) checkOrder(patched, order, mergeKey, where);
    const merged = getOwn(result, field);
    if (!Array.isArray(merged)) continue;
    const before = getOwn(original, field);
    setOwn(result, field, orderElements(merged, order, Array.isArray(before) ? before : [], mergeKey, where));
  }
}

function listRule(schema: Schema<unknown> | undefined): ListRule {
  const node = schema?.node;
  if (node?.type !== 'list') return { merge: false, mergeKey: undefined, items: undefined };
  const merge = node.patchStrategy === 'merge' || node.patchStrategy === 'merge,retainKeys';
  return { merge, mergeKey: node.patchMergeKey, items: node.items };
}
