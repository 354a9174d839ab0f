import { configMapKeyErrors, fieldError } from '@keelson/core';
import { pushInvalid, sameJson } from './checks.ts';
import type { Errors } from './errors.ts';

/** Maximum total bytes of the values of a ConfigMap or Secret. */
export const maxDataBytes = 1024 * 1024;

/** Validates the keys of a ConfigMap or Secret. */
export function checkDataKeys(data: Record<string, unknown> | undefined, path: string, errors: Errors): void {
  for (const key of Object.keys(data ?? {})) pushInvalid(configMapKeyErrors(key), key, `${path}[${key}]`, errors);
}

interface Data {
  immutable?: boolean;
  data?: Record<string, string>;
  binaryData?: Record<string, string>;
}

/** Rejects changes of `immutable` and of the data of an immutable object. */
export function checkImmutableData(object: Data, old: Data, errors: Errors): void {
  if (!old.immutable) return;
  const detail = 'field is immutable when `immutable` is set';
  if (!object.immutable) errors.push(fieldError.forbidden('immutable', detail));
  for (const field of ['data', 'binaryData'] as const) {
    if (!sameJson(object[field] ?? {}, old[field] ?? {})) errors.push(fieldError.forbidden(field, detail));
  }
}
