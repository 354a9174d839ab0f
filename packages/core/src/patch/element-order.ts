import { isJsonObject } from '../json/json.ts';
import { type PatchBudget, PatchError } from './patch-budget.ts';

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
  budget: PatchBudget,
): readonly unknown[] {
  budget.spendOnRanks(merged.length + order.length + original.length);
  const identity = identityOf(mergeKey, path);
  const wanted = ranksOf(order, identity);
  const before = ranksOf(original, identity);
  const named: RankedItem[] = [];
  const serverOnly: RankedItem[] = [];
  for (const item of merged) {
    const id = identity(item);
    const place = before.get(id) ?? -1;
    const rank = wanted.get(id);
    if (rank === undefined) serverOnly.push({ item, rank: place, place });
    else named.push({ item, rank, place });
  }
  named.sort(byRank);
  serverOnly.sort(byRank);

  const result: unknown[] = [];
  let next = 0;
  for (const { item, place } of named) {
    for (let own = serverOnly[next]; own !== undefined; own = serverOnly[next]) {
      if (own.place === -1 || place === -1 || own.place > place) break;
      result.push(own.item);
      next++;
    }
    result.push(item);
  }
  for (const { item } of serverOnly.slice(next)) result.push(item);
  return result;
}

/** An item with its position in the sequence that it belongs to, and in the original list; -1 where it is not. */
interface RankedItem {
  readonly item: unknown;
  readonly rank: number;
  readonly place: number;
}

const byRank = (a: RankedItem, b: RankedItem): number => a.rank - b.rank;

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
