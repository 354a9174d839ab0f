// One file: update and apply change the owners of fields by the same steps.
import { equalJson, isJsonObject, type JsonObject } from '../json/json.ts';
import type { SchemaNode } from '../kind/schema.ts';
import type { AnyObject, ManagedFieldsEntry } from '../meta/types.ts';
import { lastAppliedAnnotation, lastAppliedFields, notLastApplied, renewLastApplied } from './client-side-apply.ts';
import { type Changes, compareObjects } from './compare.ts';
import { FieldSet } from './field-set.ts';
import {
  capUpdaters,
  content,
  type FieldConflict,
  isReset,
  noOwners,
  type Owned,
  type Owners,
  ownerId,
  readOwners,
  timeText,
  withoutTimes,
  withSet,
  writeOwners,
} from './managed-fields.ts';
import { mergeObjects } from './merge-objects.ts';
import {
  fieldsOf,
  type NodeType,
  reconciled,
  removeItems,
  withNamedFields,
  withoutFilledLists,
} from './typed-value.ts';

/** The kind of a tracked object, in the version of the request. */
export interface TrackedKind {
  readonly apiVersion: string;
  readonly type: SchemaNode;
  /** The subresource through which the object is written. */
  readonly subresource?: string | undefined;
  /** Fields that this write cannot change, and that it therefore does not own. */
  readonly resetFields: FieldSet;
  /**
   * The object in another version; undefined when that version is not served any more, without `object` when only a
   * webhook can convert it. Owners in such a version keep their fields.
   */
  readonly inVersion: (
    object: JsonObject,
    apiVersion: string,
  ) => { readonly object: JsonObject | undefined; readonly type: NodeType } | undefined;
}

/** The manager that writes an object, and the time of the write. */
export interface Writer {
  readonly manager: string;
  readonly nowMs: number;
}

/** The result of an apply. */
export type Applied =
  | { readonly object: AnyObject; readonly managedFields: ManagedFieldsEntry[] | undefined }
  | { readonly conflicts: readonly FieldConflict[] };

const beforeFirstApply = 'before-first-apply';
const clientSideApply = 'kubectl-client-side-apply';

/** Fields that identify an object or that only the server sets. They have no owners. */
const unowned = FieldSet.of(
  ['f:apiVersion'],
  ['f:kind'],
  ['f:metadata'],
  ...['name', 'namespace', 'creationTimestamp', 'selfLink', 'uid', 'clusterName', 'generation', 'managedFields'].map(
    (name) => ['f:metadata', `f:${name}`],
  ),
  ['f:metadata', 'f:resourceVersion'],
);

/**
 * `metadata.managedFields` after a write that is no apply, or undefined when the object is not tracked. Objects are
 * tracked from their first apply on, or from the moment a client writes managedFields itself: see
 * docs/adr/0082-owners-of-fields-are-recorded-from-the-first-apply.md.
 *
 * @param live the object before the write; `{}` on create
 */
export function managedFieldsAfterUpdate(
  kind: TrackedKind,
  live: AnyObject,
  object: AnyObject,
  writer: Writer,
): ManagedFieldsEntry[] | undefined {
  const given = object.metadata?.managedFields;
  const stored = live.metadata?.managedFields;
  // A write of a subresource cannot change managedFields.
  const wanted = kind.subresource === undefined ? given : stored;
  if (wanted === undefined && stored === undefined) return undefined;
  if (isReset(wanted)) return undefined;
  const [before, after] = [content(live), content(object)];
  const isSameRecord = wanted === undefined || wanted === stored || equalJson(wanted, stored);
  const changes = filtered(compareObjects(kind.type, before, after), kind.resetFields);
  if (stored !== undefined && isSameRecord && isNothing(changes)) return stored;
  let owners = readOwners(wanted);
  if (owners === undefined || owners.size === 0) owners = readOwners(stored) ?? noOwners;
  if (owners.size === 0) return undefined;
  return writeOwners(update(kind, { live: before, next: after, changes }, owners, writer));
}

/**
 * Restores the managedFields of the stored object when a write changes nothing but their times: such a write is not
 * stored.
 */
export function keepTimes(object: AnyObject, live: AnyObject): void {
  const [is, was] = [object.metadata?.managedFields, live.metadata?.managedFields];
  if (object.metadata === undefined || is === undefined || was === undefined || is.length !== was.length) return;
  if (equalJson(withoutTimes(is), withoutTimes(was)) && equalJson(content(object), content(live)))
    object.metadata.managedFields = was;
}

/** Two states of an object, and in which fields they differ. */
interface Change {
  readonly live: JsonObject;
  readonly next: JsonObject;
  readonly changes: Changes;
}

function isNothing({ added, modified, removed }: Changes): boolean {
  return [added, modified, removed].every((set) => set.difference(unowned).empty);
}

function update(kind: TrackedKind, change: Change, owners: Owners, writer: Writer): Owners {
  const others = transfer(kind, change, reconcileAll(kind, change.live, owners), undefined);
  const set = change.changes.modified.union(change.changes.added).difference(unowned);
  if (set.empty) return capUpdaters(others);
  const { apiVersion, subresource } = kind;
  const entry = { manager: writer.manager, operation: 'Update' as const, apiVersion };
  const self = subresource === undefined ? entry : { ...entry, subresource };
  const id = ownerId(self);
  const before = others.get(id)?.set;
  const owned: Owned = { ...self, set: before ? set.union(before) : set, time: timeText(writer.nowMs) };
  return capUpdaters(new Map(others).set(id, owned));
}

/** Converts the field sets of all owners to the current schema. */
function reconcileAll(kind: TrackedKind, live: JsonObject, owners: Owners): Owners {
  const types = new Map<string, NodeType | null>([[kind.apiVersion, kind.type]]);
  const result = new Map<string, Owned>();
  for (const [id, owned] of owners) {
    let type = types.get(owned.apiVersion);
    if (type === undefined && !types.has(owned.apiVersion)) {
      const converted = kind.inVersion(live, owned.apiVersion);
      type = converted === undefined ? null : converted.type;
      types.set(owned.apiVersion, type);
    }
    if (type === null) continue;
    const set = reconciled(type, owned.set);
    result.set(id, withSet(owned, set));
  }
  return result;
}

/**
 * Removes from all owners but `self` the fields that change between two states. With `conflicts`, a field that another
 * owner loses because its value changes is also added to `conflicts`.
 */
function transfer(
  kind: TrackedKind,
  { live, next, changes: own }: Change,
  owners: Owners,
  self: string | undefined,
  conflicts?: FieldConflict[],
): Owners {
  const versions = new Map<string, Changes | 'unknown' | undefined>([[kind.apiVersion, own]]);
  const result = new Map<string, Owned>();
  for (const [id, owned] of owners) {
    if (id === self) {
      if (!owned.set.empty) result.set(id, owned);
      continue;
    }
    const { apiVersion } = owned;
    if (!versions.has(apiVersion)) versions.set(apiVersion, compareInVersion(kind, live, next, apiVersion));
    const changes = versions.get(apiVersion);
    if (changes === undefined) continue;
    if (changes === 'unknown') {
      result.set(id, owned);
      continue;
    }
    const taken = owned.set.intersection(changes.modified.union(changes.added));
    if (conflicts !== undefined) for (const path of taken.paths()) conflicts.push({ owner: owned, path });
    const set = owned.set.difference(taken).difference(changes.removed);
    if (!set.empty) result.set(id, withSet(owned, set));
  }
  return result;
}

function compareInVersion(
  kind: TrackedKind,
  live: JsonObject,
  next: JsonObject,
  apiVersion: string,
): Changes | 'unknown' | undefined {
  const was = kind.inVersion(live, apiVersion);
  const is = kind.inVersion(next, apiVersion);
  if (was === undefined || is === undefined) return undefined;
  if (was.object === undefined || is.object === undefined) return 'unknown';
  return filtered(compareObjects(was.type, was.object, is.object), kind.resetFields);
}

function filtered({ added, modified, removed }: Changes, resetFields: FieldSet): Changes {
  return {
    added: added.recursiveDifference(resetFields),
    modified: modified.recursiveDifference(resetFields),
    removed: removed.recursiveDifference(resetFields),
  };
}

/**
 * Applies a configuration: merges it into the live object, removes what the manager applied before and does not apply
 * any more, and records the owners.
 *
 * @param live the object before the write; on create only its identity
 * @param force takes fields from their owners instead of reporting conflicts
 */
export function applyObject(
  kind: TrackedKind,
  live: AnyObject,
  config: AnyObject,
  writer: Writer,
  force: boolean,
): Applied {
  const before = content(live);
  const unchanged = applyAgain(kind, before, live.metadata?.managedFields, config, writer.manager);
  if (unchanged !== undefined) {
    if (writer.manager === 'kubectl') renewLastApplied(unchanged.object, config);
    return unchanged;
  }
  let owners = readOwners(live.metadata?.managedFields) ?? noOwners;
  if (owners.size === 0) owners = ownersBeforeFirstApply(kind, before, live, writer.nowMs);
  const conflicts: FieldConflict[] = [];
  let applied = apply(kind, before, config, owners, writer, force ? undefined : conflicts);
  if (conflicts.length > 0) {
    const open = writer.manager === 'kubectl' ? notLastApplied(kind, live, conflicts) : conflicts;
    if (open.length > 0) return { conflicts: open };
    applied = apply(kind, before, config, owners, writer, undefined);
  }
  const { object, owners: after } = applied;
  if (writer.manager === 'kubectl') renewLastApplied(object, config);
  return { object, managedFields: writeOwners(after) };
}

/**
 * Fast path for an apply that repeats the previous one: neither the object nor its owners change. Undefined when this
 * apply changes something.
 */
function applyAgain(
  kind: TrackedKind,
  live: JsonObject,
  stored: ManagedFieldsEntry[] | undefined,
  config: AnyObject,
  manager: string,
): Extract<Applied, { readonly object: AnyObject }> | undefined {
  const own = stored?.find(
    (entry) =>
      entry.manager === manager &&
      entry.operation === 'Apply' &&
      entry.apiVersion === kind.apiVersion &&
      entry.subresource === kind.subresource,
  );
  if (own === undefined) return undefined;
  const object = mergeObjects(kind.type, live, config);
  if (!equalJson(object, live)) return undefined;
  const set = fieldsOf(kind.type, config).recursiveDifference(kind.resetFields).difference(unowned);
  return equalJson(set.toFieldsV1(), own.fieldsV1) ? { object: object as AnyObject, managedFields: stored } : undefined;
}

function apply(
  kind: TrackedKind,
  live: JsonObject,
  config: AnyObject,
  stored: Owners,
  { manager, nowMs }: Writer,
  conflicts: FieldConflict[] | undefined,
): { readonly object: AnyObject; readonly owners: Owners } {
  const owners = new Map(reconcileAll(kind, live, stored));
  const { apiVersion, subresource } = kind;
  const self = { manager, operation: 'Apply' as const, apiVersion, ...(subresource ? { subresource } : {}) };
  const id = ownerId(self);
  const last = owners.get(id);
  const set = fieldsOf(kind.type, config).recursiveDifference(kind.resetFields);
  owners.set(id, { ...self, set, ...(last?.time === undefined ? {} : { time: last.time }) });
  const merged = mergeObjects(kind.type, live, config);
  const object = last === undefined ? merged : prune(kind, merged, owners, last, set);
  const changes = filtered(compareObjects(kind.type, live, object), kind.resetFields);
  const others = transfer(kind, { live, next: object, changes }, owners, id, conflicts);
  const isChanged = !equalJson(live, object);
  const result = new Map(others);
  const own = set.difference(unowned);
  const entry = result.get(id);
  if (own.empty) result.delete(id);
  else if (entry !== undefined) result.set(id, { ...entry, set: own, ...(isChanged ? { time: timeText(nowMs) } : {}) });
  return { object: object as AnyObject, owners: result };
}

/**
 * Removes the fields that were in the previous configuration of the manager and are not in the new one, unless another
 * manager owns them. The field sets are computed only when a field has disappeared from the configuration.
 */
function prune(kind: TrackedKind, merged: JsonObject, owners: Owners, last: Owned, applied: FieldSet): JsonObject {
  if (last.apiVersion === kind.apiVersion && last.set.difference(applied).empty) return merged;
  const inLast = kind.inVersion(merged, last.apiVersion);
  if (inLast?.object === undefined) return merged;
  const { type, object: mergedInLast } = inLast;
  const lastSet = withNamedFields(type, last.set);
  const removed = objectOf(removeItems(type, mergedInLast, lastSet));
  const kept = addBackOwned(kind, mergedInLast, removed, last.apiVersion, owners);
  const mergedSet = withNamedFields(type, fieldsOf(type, mergedInLast));
  const keptSet = withNamedFields(type, fieldsOf(type, kept));
  const pruned = objectOf(removeItems(type, mergedInLast, mergedSet.difference(keptSet).intersection(lastSet)));
  return kind.inVersion(pruned, kind.apiVersion)?.object ?? merged;
}

/**
 * Restores removed fields that still have an owner: another manager, or the manager itself through its new
 * configuration. Each version in which an owner has written is checked.
 */
function addBackOwned(
  kind: TrackedKind,
  merged: JsonObject,
  removed: JsonObject,
  version: string,
  owners: Owners,
): JsonObject {
  const ownedIn = new Map<string, FieldSet>();
  for (const { apiVersion, set } of owners.values()) {
    ownedIn.set(apiVersion, ownedIn.get(apiVersion)?.union(set) ?? set);
  }
  const versions = [version, ...[...ownedIn.keys()].filter((other) => other !== version)];
  let result = removed;
  for (const apiVersion of versions) {
    const owned = ownedIn.get(apiVersion);
    if (owned === undefined) continue;
    const whole = kind.inVersion(merged, apiVersion);
    const part = kind.inVersion(result, apiVersion);
    if (whole?.object === undefined || part?.object === undefined) continue;
    const { type } = whole;
    const wholeSet = withNamedFields(type, fieldsOf(type, whole.object));
    const partSet = withNamedFields(type, fieldsOf(type, part.object)).union(withNamedFields(type, owned));
    const restored = objectOf(removeItems(type, whole.object, wholeSet.difference(partSet)));
    result = kind.inVersion(restored, version)?.object ?? result;
  }
  return result;
}

function objectOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

/**
 * The owners of an object before its first apply. A field that client-side apply has set belongs to client-side apply
 * as long as it has the value of the last applied configuration, so that kubectl can take it over. All other fields
 * belong to `before-first-apply`.
 */
function ownersBeforeFirstApply(kind: TrackedKind, before: JsonObject, live: AnyObject, nowMs: number): Owners {
  const given = withoutFilledLists(kind.type, before);
  const changes = filtered(compareObjects(kind.type, {}, given), kind.resetFields);
  const owners = update(kind, { live: {}, next: given, changes }, noOwners, { manager: beforeFirstApply, nowMs });
  const [id, rest] = [...owners][0] ?? [];
  const applied = kind.subresource === undefined ? lastAppliedFields(kind, live) : undefined;
  if (id === undefined || rest === undefined || applied === undefined) return owners;
  const set = applied.union(FieldSet.of(['f:metadata', 'f:annotations', `f:${lastAppliedAnnotation}`]));
  const own = withContainers(set).recursiveDifference(kind.resetFields).intersection(rest.set);
  if (own.empty) return owners;
  const entry: Owned = { ...withSet(rest, own), manager: clientSideApply };
  const result = new Map<string, Owned>([[ownerId(entry), entry]]);
  const others = rest.set.difference(own);
  if (!others.empty) result.set(id, withSet(rest, others));
  return result;
}

/** A set with all ancestors of its members. */
function withContainers(set: FieldSet): FieldSet {
  const result = new FieldSet();
  for (const element of set.memberElements()) result.add(element);
  for (const [element, below] of set.childElements()) {
    result.add(element);
    result.attach(element, withContainers(below));
  }
  return result;
}
