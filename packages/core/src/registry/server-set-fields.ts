import { randomUUID } from 'node:crypto';
import { copyJson, equalJson } from '../json/json.ts';
import { decoderOf } from '../kind/decoder.ts';
import type { KindDefinition } from '../kind/kind-definition.ts';
import { messageNode } from '../kind/schema-walk.ts';
import { formatTime } from '../meta/time.ts';
import type { AnyObject, ObjectMeta, OwnerReference } from '../meta/types.ts';

/**
 * Metadata with its fields in canonical order. Fields that only the server sets come from `own`. All other fields are
 * dropped, such as a selfLink in the body.
 */
function ordered(meta: ObjectMeta, own: Partial<ObjectMeta>): ObjectMeta {
  const result: ObjectMeta = {};
  if (meta.name !== undefined) result.name = meta.name;
  if (meta.generateName !== undefined) result.generateName = meta.generateName;
  if (meta.namespace !== undefined) result.namespace = meta.namespace;
  if (own.selfLink !== undefined) result.selfLink = own.selfLink;
  if (own.uid !== undefined) result.uid = own.uid;
  if (own.resourceVersion !== undefined) result.resourceVersion = own.resourceVersion;
  if (own.generation !== undefined) result.generation = own.generation;
  if (own.creationTimestamp !== undefined) result.creationTimestamp = own.creationTimestamp;
  if (own.deletionTimestamp !== undefined) result.deletionTimestamp = own.deletionTimestamp;
  if (own.deletionGracePeriodSeconds !== undefined) result.deletionGracePeriodSeconds = own.deletionGracePeriodSeconds;
  if (meta.labels !== undefined) result.labels = meta.labels;
  if (meta.annotations !== undefined) result.annotations = meta.annotations;
  if (meta.ownerReferences !== undefined) result.ownerReferences = meta.ownerReferences;
  if (meta.finalizers !== undefined) result.finalizers = meta.finalizers;
  if (meta.managedFields !== undefined) result.managedFields = meta.managedFields;
  return result;
}

/** Path of an object in the storage version: the value of selfLink when the server sets it. */
export function objectPath(kind: KindDefinition, meta: ObjectMeta): string {
  const root = kind.group === '' ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`;
  const space = kind.scope === 'Namespaced' ? `/namespaces/${encodeURIComponent(meta.namespace ?? '')}` : '';
  return `${root}${space}/${kind.names.plural}/${encodeURIComponent(meta.name ?? '')}`;
}

/** Whether objects of the kind have metadata.generation. */
export function keepsGeneration(kind: KindDefinition): boolean {
  return (kind.strategy.generation ?? 'none') !== 'none';
}

/**
 * Metadata of a new object. Server-set fields replace those of the client: see
 * docs/reference/api-rules.md#server-set-metadata.
 */
export function newMetadata(
  kind: KindDefinition,
  meta: ObjectMeta,
  options: { readonly nowMs: number; readonly selfLink?: string },
): ObjectMeta {
  return ordered(meta, {
    ...(options.selfLink === undefined ? {} : { selfLink: options.selfLink }),
    uid: randomUUID(),
    ...(keepsGeneration(kind) ? { generation: 1 } : {}),
    creationTimestamp: formatTime(new Date(options.nowMs)),
  });
}

/**
 * Metadata of a changed object. uid, deletionTimestamp and deletionGracePeriodSeconds are restored when the body omits
 * them, and remain as sent otherwise, so that validation rejects a change of them. generation, creationTimestamp and
 * resourceVersion are always those of the stored object.
 */
export function changedMetadata(
  meta: ObjectMeta,
  old: ObjectMeta,
  options: { readonly selfLink?: string; readonly warn: (text: string) => void },
): ObjectMeta {
  const uid = meta.uid || old.uid;
  const deletionTimestamp = meta.deletionTimestamp ?? old.deletionTimestamp;
  const grace = meta.deletionGracePeriodSeconds ?? old.deletionGracePeriodSeconds;
  const generateName = meta.generateName ?? old.generateName;
  const changed = ordered(
    { ...meta, ...(generateName === undefined ? {} : { generateName }) },
    {
      ...(options.selfLink === undefined ? {} : { selfLink: options.selfLink }),
      ...(uid === undefined ? {} : { uid }),
      ...(old.resourceVersion === undefined ? {} : { resourceVersion: old.resourceVersion }),
      ...(old.generation === undefined ? {} : { generation: old.generation }),
      ...(old.creationTimestamp === undefined ? {} : { creationTimestamp: copyJson(old.creationTimestamp) }),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
      ...(grace === undefined ? {} : { deletionGracePeriodSeconds: grace }),
    },
  );
  dropRepeatedOwners(changed, options.warn);
  return changed;
}

/** Removes repeated owner references and sends a warning. */
export function dropRepeatedOwners(meta: ObjectMeta, warn: (text: string) => void): void {
  const owners = meta.ownerReferences;
  if (owners === undefined || owners.length < 2) return;
  const distinct = new Map<string, OwnerReference>();
  for (const owner of owners) {
    const { apiVersion, kind, name, uid, controller, blockOwnerDeletion } = owner;
    const identity = JSON.stringify([apiVersion, kind, name, uid, controller, blockOwnerDeletion]);
    if (!distinct.has(identity)) distinct.set(identity, owner);
  }
  if (distinct.size === owners.length) return;
  meta.ownerReferences = [...distinct.values()];
  warn('metadata.ownerReferences names an owner more than once; the repetitions were dropped');
}

/** Fields whose change does not increase the generation. */
const reportedFields: ReadonlySet<string> = new Set(['kind', 'apiVersion', 'metadata', 'status']);

function sameDesiredState(a: AnyObject, b: AnyObject, statusCounts: boolean): boolean {
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const counts = !reportedFields.has(key) || (statusCounts && key === 'status');
    if (counts && !equalJson(a[key], b[key])) return false;
  }
  return true;
}

/** Increases metadata.generation when the desired state has changed: see docs/reference/api-rules.md#generation. */
export function raiseGeneration(kind: KindDefinition, object: AnyObject, old: AnyObject): void {
  const rule = kind.strategy.generation ?? 'none';
  if (rule === 'none' || !object.metadata) return;
  const annotationsCount = rule === 'spec-and-annotations';
  if (
    !sameDesiredState(object, old, rule === 'content') ||
    (annotationsCount && !equalJson(object.metadata.annotations ?? {}, old.metadata?.annotations ?? {}))
  ) {
    object.metadata.generation = (old.metadata?.generation ?? 0) + 1;
  }
}

/** Resets the status of a new object: it becomes absent, or its zero value where the schema requires one. */
export function clearStatus(kind: KindDefinition, object: AnyObject): void {
  const field = messageNode(kind.schema)?.fields['status'];
  if (field === undefined) return;
  if (field.whenAbsent !== 'zero') delete object['status'];
  else object['status'] = decoderOf(field.schema)({}).value;
}

/** Restores the stored status in a write of the main resource. */
export function restoreStatus(object: AnyObject, old: AnyObject): void {
  if (old['status'] === undefined) delete object['status'];
  else object['status'] = copyJson(old['status']);
}

/** The object that a status write stores: everything but status and metadata is restored from the stored object. */
export function onlyStatus(object: AnyObject, old: AnyObject): AnyObject {
  const result: AnyObject = {};
  for (const key of Object.keys(old)) {
    if (key === 'metadata') result.metadata = object.metadata ?? {};
    else if (key !== 'status') result[key] = copyJson(old[key]);
    else if (object['status'] !== undefined) result['status'] = object['status'];
  }
  if (object['status'] !== undefined) result['status'] = object['status'];
  return result;
}
