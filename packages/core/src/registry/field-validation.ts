import { type StatusError, statusErrors } from '../errors/status-error.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { FieldValidation } from './resource-service.ts';

/** Fields that a body has and the kind has not, and fields it has twice. */
export interface DoubtfulFields {
  readonly unknownFields: readonly string[];
  readonly duplicateFields: readonly string[];
}

/** How many are named; the rest would only make the answer long. */
const shownFields = 100;

function remarks(fields: DoubtfulFields): string[] {
  return [
    ...fields.unknownFields.map((path) => `unknown field ${JSON.stringify(path)}`),
    ...fields.duplicateFields.map((path) => `duplicate field ${JSON.stringify(path)}`),
  ].slice(0, shownFields);
}

/**
 * Applies `fieldValidation`: see docs/reference/api-rules.md#field-validation.
 *
 * @throws StatusError what `refuse` makes of the text; 400 unless given.
 */
export function checkFields(
  mode: FieldValidation,
  fields: DoubtfulFields,
  context: RequestContext,
  refuse: (text: string) => StatusError = (text) => statusErrors.badRequest(text),
): void {
  if (mode === 'Ignore' || (fields.unknownFields.length === 0 && fields.duplicateFields.length === 0)) return;
  const texts = remarks(fields);
  if (mode === 'Strict') throw refuse(`strict decoding error: ${texts.join(', ')}`);
  for (const text of texts) context.warn(text);
}
