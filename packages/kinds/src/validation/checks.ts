import { isIP } from 'node:net';
import {
  configMapKeyErrors,
  dns1035LabelErrors,
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  type FieldError,
  FieldErrorReason,
  fieldError,
  isFull,
  type LabelSelectorSpec,
  labelKeyErrors,
  labelSelectorErrors,
  labelValueErrors,
  qualifiedNameErrors,
} from '@keelson/core';
import { type Cidr, parseCidr, standardAddress } from './parse-address.ts';

export { isFull };

/** Collects the errors of one object. A shared collection avoids an array for each nested message. */
export type Errors = FieldError[];

function pushBounded(this: Errors, ...errors: FieldError[]): number {
  for (const error of errors) if (!isFull(this)) this[this.length] = error;
  return this.length;
}

/**
 * An empty collection that discards errors once it is full. It is an array with its own `push`, because the
 * construction of a subclass of Array costs a microsecond, and nearly all objects have no errors.
 */
export function newErrors(): Errors {
  const errors: Errors = [];
  errors.push = pushBounded;
  return errors;
}

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

/** Rules for names in fields of an object. The registry checks the name of the object itself. */
const nameRules = {
  dns1035Label: dns1035LabelErrors,
  dns1123Label: dns1123LabelErrors,
  dns1123Subdomain: dns1123SubdomainErrors,
} as const;
export type InnerNameRule = keyof typeof nameRules;

/** Rejects negative numbers; an absent value is valid. */
export function checkNonNegative(value: number | undefined, path: string, errors: Errors): void {
  if (value !== undefined && value < 0)
    errors.push(fieldError.invalid(path, value, 'must be greater than or equal to 0'));
}

/**
 * Rejects zero and negative numbers; an absent value is valid. Kubernetes uses both spellings of the bound, depending
 * on the field.
 */
export function checkPositive(
  value: number | undefined,
  path: string,
  errors: Errors,
  bound: '0' | 'zero' = '0',
): void {
  if (value !== undefined && value <= 0) errors.push(fieldError.invalid(path, value, `must be greater than ${bound}`));
}

/** Rejects numbers outside the inclusive range; an absent value is valid. */
export function checkRange(value: number | undefined, min: number, max: number, path: string, errors: Errors): void {
  if (value !== undefined && (value < min || value > max)) {
    errors.push(fieldError.invalid(path, value, `must be between ${min} and ${max}, inclusive`));
  }
}

/** Rejects absent and empty texts; returns whether there is a text. */
export function checkText(value: string | undefined, path: string, errors: Errors): value is string {
  if (value) return true;
  errors.push(fieldError.required(path));
  return false;
}

/** Rejects values that are not in `supported`; absent and empty values are valid. */
export function checkOneOf(
  value: string | undefined,
  supported: readonly string[],
  path: string,
  errors: Errors,
): void {
  if (value && !supported.includes(value)) errors.push(fieldError.notSupported(path, value, supported));
}

/** Rejects absent values and values that are not in `supported`. */
export function checkRequiredOneOf(
  value: string | undefined,
  supported: readonly string[],
  path: string,
  errors: Errors,
): void {
  if (checkText(value, path, errors)) checkOneOf(value, supported, path, errors);
}

/** Applies a name rule to a required text; returns whether there is a text. */
export function checkRequiredName(
  value: string | undefined,
  rule: InnerNameRule,
  path: string,
  errors: Errors,
): value is string {
  if (!checkText(value, path, errors)) return false;
  checkName(value, rule, path, errors);
  return true;
}

/** Applies a name rule; absent and empty texts are valid. */
export function checkName(value: string | undefined, rule: InnerNameRule, path: string, errors: Errors): void {
  if (!value) return;
  for (const detail of nameRules[rule](value)) errors.push(fieldError.invalid(path, value, detail));
}

/** An `Invalid value` error without the value, which would be too long. */
export function invalidWithoutValue(path: string, detail: string): FieldError {
  return { reason: FieldErrorReason.Invalid, field: path, message: `Invalid value: ${detail}` };
}

/** Adds one `Invalid value` error for each violation that a name rule returned. */
export function pushInvalid(details: readonly string[], value: unknown, path: string, errors: Errors): void {
  for (const detail of details) errors.push(fieldError.invalid(path, value, detail));
}

/** Rejects a value that is in `seen`, and adds it otherwise. */
export function checkUnique(value: string, seen: Set<string>, path: string, errors: Errors): void {
  if (seen.has(value)) errors.push(fieldError.duplicate(path, value));
  else seen.add(value);
}

/** Rejects a value that differs from the old one as JSON. */
export function checkUnchanged(value: unknown, old: unknown, path: string, errors: Errors): void {
  if (!sameJson(value, old)) errors.push(fieldError.invalid(path, value ?? null, 'field is immutable'));
}

/** Requires an IPv4 or IPv6 address. Leading zeros are accepted; the kinds warn about them. */
export function checkIp(value: string, path: string, errors: Errors): boolean {
  if ((isIP(value) !== 0 && !value.includes('%')) || standardAddress(value) !== undefined) return true;
  errors.push(fieldError.invalid(path, value, 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'));
  return false;
}

/** Requires `address/prefix length`; returns the range. Leading zeros and host bits are accepted. */
export function checkCidr(value: string, path: string, errors: Errors): Cidr | undefined {
  const cidr = parseCidr(value);
  if (cidr) return cidr;
  errors.push(fieldError.invalid(path, value, 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)'));
  return undefined;
}

/**
 * Equality of JSON values. The order of members is ignored, and an absent member equals `undefined`, null and an empty
 * list, because encoders omit these. An empty object is a value: `emptyDir: {}` is a volume.
 */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (isBlank(a) || isBlank(b)) return isBlank(a) && isBlank(b);
  if (typeof a !== 'object' || typeof b !== 'object') return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, i) => sameJson(item, b[i]));
  }
  const left = a as Record<string, unknown>;
  const right = b as Record<string, unknown>;
  for (const key in left) if (!sameJson(left[key], own(right, key))) return false;
  for (const key in right) if (!Object.hasOwn(left, key) && !isBlank(right[key])) return false;
  return true;
}

function own(object: Record<string, unknown>, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function isBlank(value: unknown): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0);
}

/** Validates labels; absent labels are valid. */
export function checkLabels(labels: Record<string, string> | undefined, path: string, errors: Errors): void {
  for (const key in labels) {
    if (isFull(errors)) return;
    for (const detail of labelKeyErrors(key)) errors.push(fieldError.invalid(path, key, detail));
    for (const detail of labelValueErrors(labels[key] ?? ''))
      errors.push(fieldError.invalid(path, labels[key], detail));
  }
}

/** Validates a label selector; an absent selector is valid. */
export function checkLabelSelector(selector: LabelSelectorSpec | undefined, path: string, errors: Errors): void {
  for (const error of labelSelectorErrors(selector, path)) errors.push(error);
}

/** True for a selector without labels and expressions. */
export function isEmptySelector(selector: LabelSelectorSpec | undefined): boolean {
  if (!selector) return true;
  return !selector.matchExpressions?.length && Object.keys(selector.matchLabels ?? {}).length === 0;
}

/** Maximum total bytes of keys and values of annotations. */
const maxAnnotationBytes = 262144;

/** Validates keys and total size of annotations. The case of keys is ignored. */
export function checkAnnotations(annotations: Record<string, string> | undefined, path: string, errors: Errors): void {
  if (!annotations) return;
  let bytes = 0;
  for (const [key, value] of Object.entries(annotations)) {
    if (isFull(errors)) return;
    for (const detail of qualifiedNameErrors(key.toLowerCase())) errors.push(fieldError.invalid(path, key, detail));
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  if (bytes > maxAnnotationBytes) errors.push(fieldError.tooLong(path, maxAnnotationBytes));
}
