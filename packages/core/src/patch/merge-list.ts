import { isJsonObject, type JsonObject } from './json-value.ts';
import { patchDirective, patchTypeOf, withoutDirectives } from './merge-directives.ts';
import type { PatchBudget } from './patch-budget.ts';
import { PatchError } from './patch-error.ts';

type MapMerger = (original: JsonObject, patch: JsonObject) => JsonObject;

/**
 * Merges a list of a patch into a list of the document. Scalars form a set. Objects are matched by `mergeKey` (the
 * first match counts) and merged by `mergeMap`; what matches nothing is appended. `path` is for messages.
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

/** A primitive list without the `values` that `$deleteFromPrimitiveList` names, save those that the patch also adds. */
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
