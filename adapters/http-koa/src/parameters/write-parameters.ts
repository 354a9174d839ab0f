import {
  type FieldError,
  type FieldValidation,
  fieldError,
  type QueryParameters,
  statusErrors,
  type WriteParameters,
} from '@keelson/core';

const metaGroup = 'meta.k8s.io';
const validations: readonly FieldValidation[] = ['Ignore', 'Warn', 'Strict'];
const greatestFieldManager = 128;

/** `dryRun` values are all or nothing: `All` is the only word. */
export function dryRunErrors(values: readonly unknown[]): FieldError[] {
  return values.every((value) => value === 'All' || value === '')
    ? []
    : [fieldError.notSupported('dryRun', values, ['All'])];
}

function fieldManagerErrors(manager: string): FieldError[] {
  if (Buffer.byteLength(manager) > greatestFieldManager)
    return [fieldError.tooLong('fieldManager', greatestFieldManager)];
  return /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$/u.test(manager)
    ? []
    : [fieldError.invalid('fieldManager', manager, 'should only contain printable characters')];
}

const none: WriteParameters = { dryRun: false, fieldValidation: 'Warn' };

/**
 * Parameters of create, update and patch: see docs/reference/api-rules.md#query-parameters.
 *
 * @param optionsKind the kind that a 422 speaks of: `CreateOptions`, `UpdateOptions`, `PatchOptions`
 * @param apply true for the one patch type that `force` belongs to
 */
export function writeParameters(query: QueryParameters, optionsKind: string): WriteParameters {
  if (query.text === '') return none;
  const errors: FieldError[] = dryRunErrors(query.all('dryRun'));
  const fieldManager = query.first('fieldManager') ?? '';
  errors.push(...fieldManagerErrors(fieldManager));
  const validation = (query.first('fieldValidation') || 'Warn') as FieldValidation;
  if (!validations.includes(validation))
    errors.push(fieldError.notSupported('fieldValidation', validation, validations));
  if (optionsKind === 'PatchOptions' && query.has('force'))
    errors.push(fieldError.forbidden('force', 'may not be specified for non-apply patch'));
  if (errors.length > 0) throw statusErrors.invalid({ group: metaGroup, kind: optionsKind }, '', errors);
  return {
    dryRun: query.all('dryRun').includes('All'),
    fieldValidation: validation,
    ...(fieldManager === '' ? {} : { fieldManager }),
  };
}
