import { statusErrors } from '../errors/status-error.ts';
import { fieldError } from '../meta/field-error.ts';
import type { ObjectMeta } from '../meta/types.ts';
import type { AnyObject } from './json-values.ts';
import type { ResourceBinding } from './resource-binding.ts';
import { modifiedText } from './translate-error.ts';

/** Properties that the stored object must have. Empty text counts as unset. */
export interface Preconditions {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

/** Makes the write of `object` depend on `wanted`: the writer compares its metadata with the stored object. */
export function requirePreconditions(object: AnyObject, { uid, resourceVersion }: Preconditions): void {
  object.metadata = {
    ...object.metadata,
    ...(uid ? { uid } : {}),
    ...(resourceVersion ? { resourceVersion } : {}),
  };
}

/** @throws StatusError 409 when the uid of the stored object differs. */
export function checkUid(
  binding: ResourceBinding,
  name: string,
  wanted: string | undefined,
  found: string | undefined,
): void {
  if (!wanted || wanted === found) return;
  throw statusErrors.conflict(
    binding.resource,
    name,
    `Precondition failed: UID in precondition: ${wanted}, UID in object meta: ${found ?? ''}`,
  );
}

/**
 * Checks the preconditions of a DELETE: see docs/reference/api-rules.md#answers-to-a-delete. @throws StatusError 409.
 */
export function checkDeletePreconditions(
  binding: ResourceBinding,
  name: string,
  wanted: Preconditions,
  found: ObjectMeta | undefined,
): void {
  checkUid(binding, name, wanted.uid, found?.uid);
  const version = wanted.resourceVersion;
  if (!version || version === found?.resourceVersion) return;
  throw statusErrors.conflict(
    binding.resource,
    name,
    `Precondition failed: ResourceVersion in precondition: ${version}, ` +
      `ResourceVersion in object meta: ${found?.resourceVersion ?? ''}`,
  );
}

function isUnset(version: string | undefined): boolean {
  return version === undefined || version === '' || version === '0';
}

/**
 * Compares the resourceVersion of a write with the stored one: see
 * docs/reference/api-rules.md#unconditional-updates-and-creation-by-put.
 *
 * @throws StatusError 409 when they differ, 422 when the write has none and the kind requires one.
 */
export function checkVersion(
  binding: ResourceBinding,
  name: string,
  wanted: string | undefined,
  found: string | undefined,
): void {
  if (isUnset(wanted)) {
    if (binding.kind.strategy.allowUnconditionalUpdate ?? true) return;
    throw statusErrors.invalid(binding.kind, name, [
      fieldError.invalid('metadata.resourceVersion', 0, 'must be specified for an update'),
    ]);
  }
  if (wanted !== found) throw statusErrors.conflict(binding.resource, name, modifiedText);
}
