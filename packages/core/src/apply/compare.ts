import { equalJson, getOwn, type JsonObject } from '../json/json.ts';
import type { ListNode } from '../kind/schema-walk.ts';
import { FieldSet, fieldElement, type PathElement } from './field-set.ts';
import {
  asList,
  asMap,
  childType,
  fieldType,
  indexList,
  isAtomic,
  isGranularList,
  type NodeType,
} from './typed-value.ts';

/** The fields in which two values differ. The three sets have no field in common. */
export interface Changes {
  readonly removed: FieldSet;
  readonly modified: FieldSet;
  readonly added: FieldSet;
}

class Comparison implements Changes {
  readonly removed = new FieldSet();
  readonly modified = new FieldSet();
  readonly added = new FieldSet();

  attach(element: PathElement, below: Comparison): void {
    this.removed.attach(element, below.removed);
    this.modified.attach(element, below.modified);
    this.added.attach(element, below.added);
  }
}

/** Compares two states of an object. Sets contain leaves and whole items, as in {@link fieldsOf}. */
export function compareObjects(type: NodeType, before: JsonObject, after: JsonObject): Changes {
  const comparison = new Comparison();
  compareMaps(type, before, after, comparison);
  return comparison;
}

function compareMaps(
  type: NodeType,
  before: JsonObject | undefined,
  after: JsonObject | undefined,
  out: Comparison,
): void {
  for (const name of Object.keys(before ?? {})) {
    const [was, is] = [before?.[name], after && getOwn(after, name)];
    if (was !== undefined) compareItems(fieldType(type, name), was, is, fieldElement(name), out);
  }
  for (const name of Object.keys(after ?? {})) {
    const is = after?.[name];
    if (is === undefined || (before && getOwn(before, name) !== undefined)) continue;
    compareItems(fieldType(type, name), undefined, is, fieldElement(name), out);
  }
}

/** Compares the values of one element in two containers; undefined: the container does not have the element. */
function compareItems(type: NodeType, was: unknown, is: unknown, element: PathElement, out: Comparison): void {
  // Most fields of an object do not change; for these the comparison ends here.
  if (was !== undefined && is !== undefined && equalJson(was, is)) return;
  if (isContainer(type, was) || isContainer(type, is)) {
    const below = new Comparison();
    const descended = descend(type, was, is, below);
    out.attach(element, below);
    if (descended) {
      note(was, is, element, out);
      return;
    }
  }
  if (!note(was, is, element, out)) out.modified.add(element);
}

/** Records that an item as a whole appeared or disappeared. */
function note(was: unknown, is: unknown, element: PathElement, out: Comparison): boolean {
  if (was === undefined) out.added.add(element);
  else if (is === undefined) out.removed.add(element);
  else return false;
  return true;
}

/** Whether a value has items with owners of their own. */
function isContainer(type: NodeType, value: unknown): boolean {
  return asMap(value) !== undefined ? !isAtomic(type) : asList(value) !== undefined && isGranularList(type);
}

/**
 * Compares the items of two containers. Returns false when the values must be compared as leaves. This is the case when
 * they have no items, and when a value without schema changes between an object and a leaf.
 */
function descend(type: NodeType, was: unknown, is: unknown, below: Comparison): boolean {
  if (isGranularList(type)) {
    const [before, after] = [asList(was) ?? [], asList(is) ?? []];
    compareLists(type, before, after, below);
    return before.length + after.length > 0;
  }
  const [before, after] = [asMap(was), asMap(is)];
  compareMaps(type, before, after, below);
  const isLeaf = (value: unknown) => value !== undefined && value !== null && asMap(value) === undefined;
  if (isLeaf(was) || isLeaf(is)) return false;
  return hasItems(before) || hasItems(after);
}

function hasItems(map: JsonObject | undefined): boolean {
  return map !== undefined && Object.keys(map).length > 0;
}

function compareLists(type: ListNode, before: readonly unknown[], after: readonly unknown[], out: Comparison): void {
  const was = indexList(type, before);
  const is = indexList(type, after);
  for (const [element, items] of was) compareElements(type, element, items, is.get(element) ?? [], out);
  for (const [element, items] of is) if (!was.has(element)) compareElements(type, element, [], items, out);
}

/** Compares list elements with the same keys. When a list has several of them, they are compared as one value. */
function compareElements(
  list: ListNode,
  element: PathElement,
  was: readonly unknown[],
  is: readonly unknown[],
  out: Comparison,
): void {
  const type = childType(list, element);
  if (was.length <= 1 && is.length <= 1) compareItems(type, was[0], is[0], element, out);
  else if (was.length > 1 && is.length > 1) {
    if (!equalJson(was, is)) out.modified.add(element);
  } else if (was.length > 1) {
    if (is.length > 0) compareItems(type, undefined, is[0], element, out);
    out.removed.add(element);
  } else {
    if (was.length > 0) compareItems(type, was[0], undefined, element, out);
    out.added.add(element);
  }
}
