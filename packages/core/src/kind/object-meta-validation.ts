import { addErrors, type FieldError, fieldError, isFull } from '../meta/field-error.ts';
import {
  dns1123LabelErrors,
  labelsErrors,
  type NameRule,
  nameErrors,
  namePrefixErrors,
  qualifiedNameErrors,
} from '../meta/names.ts';
import { type ObjectMeta, type OwnerReference, parseApiVersion } from '../meta/types.ts';

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
  for (const [index, owner] of owners.entries()) {
    if (isFull(errors)) return errors;
    checkOwnerReference(owner, `${path}[${index}]`, errors);
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

/** The parts that clients may change at any time. */
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

/** Whether finalizers that are not standard need a domain in front (built-in kinds), or may be any qualified name. */
export type FinalizerRule = 'domain' | 'qualifiedName';

/** Finalizers that need no domain in front. */
const standard: ReadonlySet<string> = new Set(['kubernetes', orphanFinalizer, foregroundFinalizer]);

function finalizerErrors(finalizer: string, rule: FinalizerRule): string[] {
  const errors = qualifiedNameErrors(finalizer);
  if (rule === 'qualifiedName' || errors.length > 0 || finalizer.includes('/') || standard.has(finalizer))
    return errors;
  return ['name is neither a standard finalizer name nor is it fully qualified'];
}

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
    for (const detail of finalizerErrors(finalizer, rule)) errors.push(fieldError.invalid(path, finalizer, detail));
  }
  if (given.includes(orphanFinalizer) && given.includes(foregroundFinalizer)) {
    const detail = `finalizer ${orphanFinalizer} and ${foregroundFinalizer} cannot be both set`;
    errors.push(fieldError.invalid(path, given, detail));
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
