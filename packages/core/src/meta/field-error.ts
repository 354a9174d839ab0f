import { cutText } from './cut-text.ts';

/** Reasons of field errors: the values of `Status.details.causes[].reason`. */
export const FieldErrorReason = {
  Required: 'FieldValueRequired',
  Invalid: 'FieldValueInvalid',
  NotSupported: 'FieldValueNotSupported',
  Forbidden: 'FieldValueForbidden',
  Duplicate: 'FieldValueDuplicate',
  NotFound: 'FieldValueNotFound',
  TooLong: 'FieldValueTooLong',
  TooMany: 'FieldValueTooMany',
  TypeInvalid: 'FieldValueTypeInvalid',
  Internal: 'InternalError',
} as const;
export type FieldErrorReason = (typeof FieldErrorReason)[keyof typeof FieldErrorReason];

/** One field error. `field` is a path in JavaScript notation, `message` is everything after `<field>: `. */
export interface FieldError {
  readonly reason: FieldErrorReason;
  readonly field: string;
  readonly message: string;
}

/** Maximum number of characters of a value in a message. */
const maxShown = 1024;

function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(cutText(value, maxShown));
  if (typeof value === 'bigint') return String(value);
  const text = JSON.stringify(value, (_key, inner: unknown) => (typeof inner === 'bigint' ? String(inner) : inner));
  return cutText(text ?? 'null', maxShown);
}

function withDetail(text: string, detail?: string): string {
  return detail ? `${text}: ${detail}` : text;
}

/** Builders of {@link FieldError} with the texts of Kubernetes: see docs/reference/api-rules.md#validation-errors. */
export const fieldError = {
  required: (field: string, detail?: string): FieldError => ({
    reason: FieldErrorReason.Required,
    field,
    message: withDetail('Required value', detail),
  }),
  invalid: (field: string, value: unknown, detail: string): FieldError => ({
    reason: FieldErrorReason.Invalid,
    field,
    message: `Invalid value: ${shown(value)}: ${detail}`,
  }),
  typeInvalid: (field: string, value: unknown, detail: string): FieldError => ({
    reason: FieldErrorReason.TypeInvalid,
    field,
    message: `Invalid value: ${shown(value)}: ${detail}`,
  }),
  notSupported: (field: string, value: unknown, supported: readonly string[]): FieldError => ({
    reason: FieldErrorReason.NotSupported,
    field,
    message: `Unsupported value: ${shown(value)}: supported values: ${supported.map((s) => JSON.stringify(s)).join(', ')}`,
  }),
  forbidden: (field: string, detail: string): FieldError => ({
    reason: FieldErrorReason.Forbidden,
    field,
    message: `Forbidden: ${detail}`,
  }),
  duplicate: (field: string, value: unknown): FieldError => ({
    reason: FieldErrorReason.Duplicate,
    field,
    message: `Duplicate value: ${shown(value)}`,
  }),
  notFound: (field: string, value: unknown): FieldError => ({
    reason: FieldErrorReason.NotFound,
    field,
    message: `Not found: ${shown(value)}`,
  }),
  tooLong: (field: string, maxBytes: number): FieldError => ({
    reason: FieldErrorReason.TooLong,
    field,
    message: `Too long: may not be more than ${maxBytes} ${maxBytes === 1 ? 'byte' : 'bytes'}`,
  }),
  tooMany: (field: string, actual: number, maxItems: number): FieldError => ({
    reason: FieldErrorReason.TooMany,
    field,
    message: `Too many: ${actual}: must have at most ${maxItems} ${maxItems === 1 ? 'item' : 'items'}`,
  }),
} as const;

/** Causes that one answer lists at most. */
export const maxListedErrors = 100;

/**
 * True when a collection needs no further errors, and loops over client data may end: a body within the size limit can
 * be wrong in hundreds of thousands of places. It holds one more than an answer lists, so that the answer can state
 * that its list is incomplete.
 */
export function isFull(errors: readonly FieldError[]): boolean {
  return errors.length > maxListedErrors;
}

/**
 * Adds errors one by one until the collection is full. A call with spread arguments would fail for a very long list.
 */
export function addErrors(errors: FieldError[], more: readonly FieldError[]): void {
  for (const error of more) {
    if (isFull(errors)) return;
    errors.push(error);
  }
}
