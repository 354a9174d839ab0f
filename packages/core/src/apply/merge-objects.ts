import { getOwn, type JsonObject, setOwn } from '../json/json.ts';
import type { ListNode } from '../kind/schema-walk.ts';
import type { PathElement } from './field-set.ts';
import {
  asList,
  asMap,
  childType,
  elementOf,
  fieldType,
  isAtomic,
  isGranularList,
  type NodeType,
} from './typed-value.ts';

/**
 * An object with everything that `applied` states: leaves are replaced, items with owners of their own are merged, and
 * nothing is removed. Parts of both arguments are shared with the result. The elements of a merged list have the order
 * of `applied`; elements that only `live` has keep their place relative to them.
 */
export function mergeObjects(type: NodeType, live: JsonObject, applied: JsonObject): JsonObject {
  return mergeMaps(type, live, applied);
}

function mergeValues(type: NodeType, live: unknown, applied: unknown): unknown {
  if (applied === undefined) return live;
  if (live === undefined) return applied;
  const [liveMap, appliedMap] = [asMap(live), asMap(applied)];
  if (liveMap !== undefined && (appliedMap !== undefined || applied === null) && !isAtomic(type)) {
    const isEmpty = Object.keys(liveMap).length === 0 && Object.keys(appliedMap ?? {}).length === 0;
    return isEmpty ? applied : mergeMaps(type, liveMap, appliedMap ?? {});
  }
  const [liveList, appliedList] = [asList(live), asList(applied)];
  if (isGranularList(type) && liveList !== undefined && (appliedList !== undefined || applied === null)) {
    return liveList.length === 0 && !appliedList?.length ? applied : mergeLists(type, liveList, appliedList ?? []);
  }
  return applied;
}

function mergeMaps(type: NodeType, live: JsonObject, applied: JsonObject): JsonObject {
  const result: JsonObject = {};
  for (const name of Object.keys(live)) {
    setOwn(result, name, mergeValues(fieldType(type, name), live[name], getOwn(applied, name)));
  }
  for (const name of Object.keys(applied)) {
    if (!Object.hasOwn(live, name)) setOwn(result, name, applied[name]);
  }
  return result;
}

function mergeLists(type: ListNode, live: readonly unknown[], applied: readonly unknown[]): unknown[] {
  const liveElements = live.map((item) => elementOf(type, item));
  const appliedElements = applied.map((item) => elementOf(type, item));
  const liveItems = new Map<PathElement, unknown>();
  // A stored element that occurs more than once is not merged.
  for (const [i, element] of liveElements.entries())
    liveItems.set(element, liveItems.has(element) ? undefined : live[i]);
  const appliedItems = new Map(appliedElements.map((element, i) => [element, applied[i]]));
  const shared = appliedElements.filter((element) => liveItems.has(element));
  let nextShared = 0;
  const merged = new Set<PathElement>();
  const result: unknown[] = [];
  const take = (element: PathElement) => {
    merged.add(element);
    result.push(mergeValues(childType(type, element), liveItems.get(element), appliedItems.get(element)));
  };
  let l = 0;
  let a = 0;
  while (l < live.length || a < applied.length) {
    const liveElement = liveElements[l];
    const appliedElement = appliedElements[a];
    if (liveElement !== undefined && appliedElement !== undefined) {
      if (liveElement === appliedElement) {
        take(liveElement);
        l++;
        a++;
        nextShared++;
        continue;
      }
      // The element is in both lists, but it is not the next shared element in the order of `applied`.
      if (appliedItems.has(liveElement) && nextShared < shared.length && shared[nextShared] !== liveElement) {
        l++;
        continue;
      }
    }
    if (liveElement !== undefined) {
      if (!appliedItems.has(liveElement)) {
        result.push(live[l]);
        l++;
        continue;
      }
      if (merged.has(liveElement)) l++;
    }
    if (appliedElement !== undefined) {
      take(appliedElement);
      a++;
      if (shared[nextShared] === appliedElement) nextShared++;
    }
  }
  return result;
}
