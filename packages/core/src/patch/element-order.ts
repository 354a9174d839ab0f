import { isJsonObject } from '../json/json.ts';
import { PatchError } from './patch-budget.ts';

/** Key of the directive that applies to a whole map or list element. */
export const patchDirective = '$patch';

/** The value of the merge key of a list element. */
export function mergeKeyOf(item: unknown, mergeKey: string, path: string): unknown {
  if (isJsonObject(item) && Object.hasOwn(item, mergeKey)) {
    const value = item[mergeKey];
    if (typeof value !== 'object') return value;
  }
  throw new PatchError('unprocessable', `map: ${path || '.'} does not contain declared merge key: ${mergeKey}`);
}

/**
 * Brings a merged list into the order that `$setElementOrder` specifies. The items it names come in its order. Items
 * that only the server has keep their own order, and precede every named item that followed them in `original`; items
 * that are new to the list do not affect their position. The order within both sequences never changes.
 */
export function orderElements(
  merged: readonly unknown[],
  order: readonly unknown[],
  original: readonly unknown[],
  mergeKey: string | undefined,
  path: string,
): readonly unknown[] {
  const identity = identityOf(mergeKey, path);
  const wanted = ranksOf(order, identity);
  const before = ranksOf(original, identity);
  const rank = (ranks: ReadonlyMap<unknown, number>, item: unknown) => ranks.get(identity(item)) ?? -1;

  const named = merged.filter((item) => wanted.has(identity(item)));
  const serverOnly = merged.filter((item) => !wanted.has(identity(item)));
  named.sort((a, b) => rank(wanted, a) - rank(wanted, b));
  serverOnly.sort((a, b) => rank(before, a) - rank(before, b));

  const result: unknown[] = [];
  let next = 0;
  for (const item of named) {
    const place = rank(before, item);
    for (; next < serverOnly.length; next++) {
      const own = rank(before, serverOnly[next]);
      if (own === -1 || place === -1 || own > place) break;
      result.push(serverOnly[next]);
    }
    result.push(item);
  }
  return result.concat(serverOnly.slice(next));
}

/**
 * Rejects a patch when its `$setElementOrder` omits an item of the list in the patch, or orders the items differently.
 */
export function checkOrder(
  patch: readonly unknown[],
  order: readonly unknown[],
  mergeKey: string | undefined,
  path: string,
): void {
  const identity = identityOf(mergeKey, path);
  let at = 0;
  for (const item of patch) {
    if (isJsonObject(item) && Object.hasOwn(item, patchDirective)) continue;
    const wanted = identity(item);
    while (at < order.length && identity(order[at]) !== wanted) at++;
    if (at === order.length) {
      throw new PatchError('unprocessable', `The order in patch list of ${path} doesn't match $setElementOrder list`);
    }
    at++;
  }
}

/** Rejects a malformed `$setElementOrder`: its items must be scalars, or objects with the merge key. */
export function checkOrderFormat(order: readonly unknown[], mergeKey: string | undefined, path: string): void {
  const fits = (item: unknown) =>
    mergeKey === undefined ? typeof item !== 'object' : isJsonObject(item) && Object.hasOwn(item, mergeKey);
  if (!order.every(fits)) {
    throw new PatchError(
      'malformed',
      `$setElementOrder/${path} must list ${mergeKey === undefined ? 'values' : `objects with ${mergeKey}`}`,
    );
  }
}

function identityOf(mergeKey: string | undefined, path: string): (item: unknown) => unknown {
  return mergeKey === undefined ? (item) => item : (item) => mergeKeyOf(item, mergeKey, path);
}

function ranksOf(items: readonly unknown[], identity: (item: unknown) => unknown): ReadonlyMap<unknown, number> {
  const ranks = new Map<unknown, number>();
  items.forEach((item, i) => {
    const id = identity(item);
    if (!ranks.has(id)) ranks.set(id, i);
  });
  return ranks;
}
