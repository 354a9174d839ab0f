import { randomUUID } from 'node:crypto';
import type { KindDefinition } from '../kind/kind-definition.ts';
import { formatTime } from '../meta/time.ts';
import type { ObjectMeta, OwnerReference } from '../meta/types.ts';
import { copyJson } from './json-values.ts';

/**
 * Metadata with its fields in canonical order, the server-set ones taken from `own`. What is not named here does not
 * survive: managedFields, which nothing keeps yet, and a selfLink that the client sent.
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
  return result;
}

/** Path of an object of the storage version, the value of selfLink where it is kept. */
export function objectPath(kind: KindDefinition, meta: ObjectMeta): string {
  const root = kind.group === '' ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`;
  const space = kind.scope === 'Namespaced' ? `/namespaces/${encodeURIComponent(meta.namespace ?? '')}` : '';
  return `${root}${space}/${kind.names.plural}/${encodeURIComponent(meta.name ?? '')}`;
}

/** Whether the kind counts its generations. */
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
 * Metadata of a changed object. uid and the deletion marks come back when the client left them out and stay as sent
 * otherwise, for validation to refuse a change of them; generation, creationTimestamp and resourceVersion are always
 * the stored ones.
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

/** Drops owner references that say the same twice, with a remark. */
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
