// One file: what the registry sets and checks in objects of every kind: metadata, generation, status.
import { randomUUID } from 'node:crypto';
import { copyJson, equalJson } from '../json/json.ts';
import { decoderOf } from '../kind/decoder.ts';
import type { KindDefinition } from '../kind/kind-definition.ts';
import { messageNode } from '../kind/schema-walk.ts';
import type { FinalizerRule, Strategy } from '../kind/strategy.ts';
import { addErrors, type FieldError, fieldError, isFull } from '../meta/field-error.ts';
import {
  dns1123LabelErrors,
  labelsErrors,
  type NameRule,
  nameErrors,
  namePrefixErrors,
  qualifiedNameErrors,
} from '../meta/names.ts';
import { formatTime } from '../meta/time.ts';
import { type AnyObject, type ObjectMeta, type OwnerReference, parseApiVersion } from '../meta/types.ts';

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
  dropRepeatedOwners(changed, options.warn, true);
  return changed;
}

/** Removes repeated owner references and sends a warning: before mutating admission those of a body, then all. */
export function dropRepeatedOwners(
  meta: ObjectMeta | undefined,
  warn: (text: string) => void,
  afterMutation = false,
): void {
  const owners = meta?.ownerReferences;
  if (meta === undefined || owners === undefined || owners.length < 2) return;
  const repeated: string[] = [];
  const distinct = new Map<string, OwnerReference>();
  for (const owner of owners) {
    const { apiVersion, kind, name, uid, controller, blockOwnerDeletion } = owner;
    const identity = JSON.stringify([apiVersion, kind, name, uid, controller, blockOwnerDeletion]);
    if (distinct.has(identity)) repeated.push(uid);
    else distinct.set(identity, owner);
  }
  if (distinct.size === owners.length) return;
  meta.ownerReferences = [...distinct.values()];
  warn(
    `.metadata.ownerReferences contains duplicate entries${afterMutation ? ' after mutating admission happens' : ''}; ` +
      'API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; ' +
      `please fix your requests; duplicate UID(s) observed: ${repeated.join(', ')}`,
  );
}

/** Fields whose change does not increase the generation. */
const reportedFields: ReadonlySet<string> = new Set(['kind', 'apiVersion', 'metadata', 'status']);

function sameDesiredState(a: AnyObject, b: AnyObject, statusCounts: boolean): boolean {
  const counts = (key: string) => !reportedFields.has(key) || (statusCounts && key === 'status');
  for (const key in a) if (counts(key) && !equalJson(a[key], b[key])) return false;
  for (const key in b) if (counts(key) && !Object.hasOwn(a, key) && b[key] !== undefined) return false;
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

/** The stored metadata with the managedFields of a write. */
function withManagedFields(old: ObjectMeta | undefined, managedFields: ObjectMeta['managedFields']): ObjectMeta {
  const meta = { ...copyJson(old ?? {}) };
  if (managedFields === undefined) delete meta.managedFields;
  else meta.managedFields = managedFields;
  return meta;
}

/**
 * The object that a status write stores: everything but status and metadata is restored from the stored object, and
 * with `keepsMetadata` the metadata too.
 */
export function onlyStatus(object: AnyObject, old: AnyObject, keepsMetadata = false): AnyObject {
  const result: AnyObject = {};
  for (const key of Object.keys(old)) {
    if (key === 'metadata')
      result.metadata = keepsMetadata
        ? withManagedFields(old.metadata, object.metadata?.managedFields)
        : (object.metadata ?? {});
    else if (key !== 'status') result[key] = copyJson(old[key]);
    else if (object['status'] !== undefined) result['status'] = object['status'];
  }
  if (object['status'] !== undefined) result['status'] = object['status'];
  return result;
}

/** Bytes of all annotation keys and values of one object together. */
export const maxAnnotationBytes = 262_144;

/** Maximum number of errors about several controllers; each repeats the list of owners. */
const maxNamedOwners = 10;

/** What the kind of an object requires of its metadata. */
export interface ObjectMetaRules {
  readonly nameRule: NameRule;
  readonly namespaced: boolean;
  /** Where the metadata stands; default `metadata`. */
  readonly path?: string;
  readonly finalizerRule?: FinalizerRule | undefined;
}

/** What is wrong with the annotations that stand at `path`. */
export function annotationsErrors(
  annotations: Readonly<Record<string, string>> | undefined,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  let bytes = 0;
  for (const [key, value] of Object.entries(annotations ?? {})) {
    if (isFull(errors)) return errors;
    for (const detail of qualifiedNameErrors(key.toLowerCase())) errors.push(fieldError.invalid(path, key, detail));
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  if (bytes > maxAnnotationBytes) errors.push(fieldError.tooLong(path, maxAnnotationBytes));
  return errors;
}

function checkOwnerReference(owner: OwnerReference, path: string, errors: FieldError[]): void {
  const version = parseApiVersion(owner.apiVersion);
  if (!version) errors.push(fieldError.invalid(`${path}.apiVersion`, owner.apiVersion, 'version must not be empty'));
  if (owner.kind === '') errors.push(fieldError.invalid(`${path}.kind`, owner.kind, 'must not be empty'));
  if (owner.name === '') errors.push(fieldError.invalid(`${path}.name`, owner.name, 'must not be empty'));
  if (owner.uid === '') errors.push(fieldError.invalid(`${path}.uid`, owner.uid, 'must not be empty'));
  if (owner.kind === 'Event' && (version?.group === '' || version?.group === 'events.k8s.io')) {
    const kind = `${version.group}/${version.version}, Kind=Event`;
    errors.push(fieldError.invalid(path, owner, `${kind} is disallowed from being an owner`));
  }
}

function ownerReferencesErrors(owners: readonly OwnerReference[], path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const owner of owners) {
    if (isFull(errors)) return errors;
    checkOwnerReference(owner, path, errors);
  }
  const [first, ...others] = owners.filter((owner) => owner.controller === true);
  for (const other of others.slice(0, maxNamedOwners)) {
    const pair = `${first?.kind}/${first?.name} and ${other.kind}/${other.name}`;
    const detail = `Only one reference can have Controller set to true. Found "true" in references for ${pair}`;
    errors.push(fieldError.invalid(path, owners, detail));
  }
  return errors;
}

function namespaceErrors(namespace: string, namespaced: boolean, path: string): FieldError[] {
  if (!namespaced) return namespace === '' ? [] : [fieldError.forbidden(path, 'not allowed on this type')];
  if (namespace === '') return [fieldError.required(path)];
  return dns1123LabelErrors(namespace).map((detail) => fieldError.invalid(path, namespace, detail));
}

/**
 * Errors of the metadata fields that clients may change at any time: labels, annotations, owner references, finalizers.
 */
function changeableErrors(meta: ObjectMeta, path: string, rule?: FinalizerRule): FieldError[] {
  const errors: FieldError[] = [];
  addErrors(errors, labelsErrors(meta.labels, `${path}.labels`));
  addErrors(errors, annotationsErrors(meta.annotations, `${path}.annotations`));
  addErrors(errors, ownerReferencesErrors(meta.ownerReferences ?? [], `${path}.ownerReferences`));
  addErrors(errors, finalizersErrors(meta.finalizers, `${path}.finalizers`, rule));
  return errors;
}

/**
 * Validates the metadata of a new object, after names were generated and server-set fields were set: see
 * docs/reference/api-rules.md#names and docs/reference/api-rules.md#labels-annotations-finalizers-owners.
 */
export function validateObjectMeta(
  meta: ObjectMeta,
  { nameRule, namespaced, path = 'metadata', finalizerRule }: ObjectMetaRules,
): FieldError[] {
  const { name = '', generateName = '', namespace = '', generation = 0 } = meta;
  const errors: FieldError[] = [];
  if (generateName !== '') {
    for (const detail of namePrefixErrors(nameRule, generateName)) {
      errors.push(fieldError.invalid(`${path}.generateName`, generateName, detail));
    }
  }
  if (name === '') errors.push(fieldError.required(`${path}.name`, 'name or generateName is required'));
  else for (const detail of nameErrors(nameRule, name)) errors.push(fieldError.invalid(`${path}.name`, name, detail));
  errors.push(...namespaceErrors(namespace, namespaced, `${path}.namespace`));
  if (generation < 0) {
    errors.push(fieldError.invalid(`${path}.generation`, generation, 'must be greater than or equal to 0'));
  }
  return [...errors, ...changeableErrors(meta, path, finalizerRule)];
}

const immutableFields = [
  'name',
  'namespace',
  'uid',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
] as const satisfies readonly (keyof ObjectMeta)[];

/**
 * Validates the metadata `meta` of an update against the stored metadata `old`: see
 * docs/reference/api-rules.md#server-set-metadata.
 */
export function validateObjectMetaUpdate(
  meta: ObjectMeta,
  old: ObjectMeta,
  options: { readonly path?: string; readonly finalizerRule?: FinalizerRule } = {},
): FieldError[] {
  const path = options.path ?? 'metadata';
  const errors: FieldError[] = [];
  if (old.deletionTimestamp !== undefined) {
    errors.push(...newFinalizersErrors(meta.finalizers ?? [], old.finalizers ?? [], `${path}.finalizers`));
  }
  if ((meta.generation ?? 0) < (old.generation ?? 0)) {
    errors.push(fieldError.invalid(`${path}.generation`, meta.generation ?? 0, 'must not be decremented'));
  }
  for (const name of immutableFields) {
    const now = meta[name] ?? undefined;
    if (now !== (old[name] ?? undefined)) errors.push(fieldError.invalid(`${path}.${name}`, now, 'field is immutable'));
  }
  return [...errors, ...changeableErrors(meta, path, options.finalizerRule)];
}

/** Finalizer: keeps an object until its dependents no longer refer to it. */
export const orphanFinalizer = 'orphan';
/** Finalizer: keeps an object until the dependents that block its deletion are deleted. */
export const foregroundFinalizer = 'foregroundDeletion';

/** Finalizers that need no domain in front. */
const standard: ReadonlySet<string> = new Set(['kubernetes', orphanFinalizer, foregroundFinalizer]);

/** Validates the list of finalizers at `path`: see docs/reference/api-rules.md#labels-annotations-finalizers-owners. */
export function finalizersErrors(
  finalizers: readonly string[] | undefined,
  path: string,
  rule: FinalizerRule = 'domain',
): FieldError[] {
  const given = finalizers ?? [];
  const errors: FieldError[] = [];
  for (const finalizer of given) {
    if (isFull(errors)) break;
    for (const detail of qualifiedNameErrors(finalizer)) errors.push(fieldError.invalid(path, finalizer, detail));
  }
  if (given.includes(orphanFinalizer) && given.includes(foregroundFinalizer)) {
    const detail = `finalizer ${orphanFinalizer} and ${foregroundFinalizer} cannot be both set`;
    errors.push(fieldError.invalid(path, given, detail));
  }
  if (rule === 'qualifiedName') return errors;
  for (const [index, finalizer] of given.entries()) {
    if (isFull(errors)) break;
    if (finalizer.includes('/') || standard.has(finalizer)) continue;
    const detail = 'name is neither a standard finalizer name nor is it fully qualified';
    errors.push(fieldError.invalid(`${path}[${index}]`, finalizer, detail));
  }
  return errors;
}

/** An object that is being deleted can only lose finalizers. */
export function newFinalizersErrors(now: readonly string[], before: readonly string[], path: string): FieldError[] {
  const known = new Set(before);
  const added = [...new Set(now)].filter((finalizer) => !known.has(finalizer)).sort();
  if (added.length === 0) return [];
  const detail = `no new finalizers can be added if the object is being deleted, found new finalizers ${JSON.stringify(added)}`;
  return [fieldError.forbidden(path, detail)];
}

/**
 * True when the object is being deleted and nothing delays its removal. The write that produced this state removes it:
 * see
 * docs/reference/api-rules.md#order-of-a-delete.
 */
export function isReleased(object: AnyObject, strategy: Strategy): boolean {
  const meta = object.metadata;
  return (
    meta?.deletionTimestamp !== undefined &&
    (meta.deletionGracePeriodSeconds ?? 0) === 0 &&
    (meta.finalizers?.length ?? 0) === 0 &&
    !(strategy.heldBack?.(object) ?? false)
  );
}
