import {
  DurationError,
  durationMs,
  type FieldError,
  fieldError,
  type PropagationPolicy,
  statusErrors,
} from '@keelson/core';
import {
  type DeleteParameters,
  type FieldValidation,
  type IncludeObject,
  isJsonObject,
  type QueryParameters,
  type SelectParameters,
  type WriteParameters,
} from '@keelson/core/internal';

/** A base-10 integer within 64 bits; undefined when absent or empty. @throws StatusError 400 */
export function integerParameter(query: QueryParameters, name: string): number | undefined {
  const text = query.first(name);
  if (text === undefined || text === '') return undefined;
  const value = /^[+-]?\d{1,19}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isFinite(value)) {
    throw statusErrors.badRequest(
      `invalid value ${JSON.stringify(text)} for query parameter ${name}: expected a base-10 integer`,
    );
  }
  return value;
}

/** A 32-bit integer; undefined when absent or empty. @throws StatusError 400 */
export function int32Parameter(query: QueryParameters, name: string): number | undefined {
  const value = integerParameter(query, name);
  if (value !== undefined && value !== (value | 0)) {
    throw statusErrors.badRequest(
      `invalid value ${JSON.stringify(query.first(name))} for query parameter ${name}: expected an integer of 32 bits`,
    );
  }
  return value;
}

/**
 * The `timeout` parameter in milliseconds, at most the timeout of the server; undefined when absent. @throws
 * StatusError 400 when it is not a duration or not positive
 */
export function timeoutParameter(query: QueryParameters): number | undefined {
  const text = query.first('timeout');
  if (text === undefined || text === '') return undefined;
  const value = readDuration(text);
  if (value === undefined || value < 0) throw statusErrors.badRequest('invalid timeout specified in the request URL');
  return value === 0 ? undefined : value;
}

function readDuration(text: string): number | undefined {
  try {
    return durationMs(text);
  } catch (error) {
    if (error instanceof DurationError) return undefined;
    throw error;
  }
}

/** The selection of a list, watch or deletecollection. The resource service rejects contradictory parameters. */
export function selectParameters(query: QueryParameters): SelectParameters {
  const text = (name: string): string | undefined => query.first(name) || undefined;
  const labelSelector = text('labelSelector');
  const fieldSelector = text('fieldSelector');
  const resourceVersionMatch = text('resourceVersionMatch');
  const token = text('continue');
  const limit = int32Parameter(query, 'limit');
  const sendInitialEvents = query.boolean('sendInitialEvents');
  const allowWatchBookmarks = query.boolean('allowWatchBookmarks');
  return {
    resourceVersion: query.first('resourceVersion') ?? '',
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
    ...(resourceVersionMatch === undefined ? {} : { resourceVersionMatch }),
    ...(token === undefined ? {} : { continue: token }),
    ...(limit === undefined || limit <= 0 ? {} : { limit }),
    ...(sendInitialEvents === undefined ? {} : { sendInitialEvents }),
    ...(allowWatchBookmarks === undefined ? {} : { allowWatchBookmarks }),
  };
}

const everything: SelectParameters = { resourceVersion: '' };

/** {@link selectParameters}; requests without a query share one result. */
export function selectParametersOf(query: QueryParameters): SelectParameters {
  return query.text === '' ? everything : selectParameters(query);
}

const metaGroup = 'meta.k8s.io';
const validations: readonly FieldValidation[] = ['Ignore', 'Warn', 'Strict'];
const greatestFieldManager = 128;

/** The only value of `dryRun` is `All`. */
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

const none: WriteParameters = { dryRun: false };

/**
 * Parameters of create, update and patch: see docs/reference/api-rules.md#query-parameters.
 *
 * @param optionsKind the kind named in a 422: `CreateOptions`, `UpdateOptions`, `PatchOptions`
 * @param isApply `force` is permitted
 */
export function writeParameters(query: QueryParameters, optionsKind: string, isApply = false): WriteParameters {
  if (query.text === '') return none;
  const errors: FieldError[] = dryRunErrors(query.all('dryRun'));
  const fieldManager = query.first('fieldManager') ?? '';
  errors.push(...fieldManagerErrors(fieldManager));
  const validation = (query.first('fieldValidation') || undefined) as FieldValidation | undefined;
  if (validation !== undefined && !validations.includes(validation))
    errors.push(fieldError.notSupported('fieldValidation', validation, validations));
  const force = query.boolean('force');
  if (optionsKind === 'PatchOptions' && !isApply && query.has('force'))
    errors.push(fieldError.forbidden('force', 'may not be specified for non-apply patch'));
  if (errors.length > 0) throw statusErrors.invalid({ group: metaGroup, kind: optionsKind }, '', errors);
  return {
    dryRun: query.all('dryRun').includes('All'),
    ...(validation === undefined ? {} : { fieldValidation: validation }),
    ...(fieldManager === '' ? {} : { fieldManager }),
    ...(isApply && force ? { force } : {}),
  };
}

const policies: readonly PropagationPolicy[] = ['Orphan', 'Background', 'Foreground'];
const optionsKind = { group: 'meta.k8s.io', kind: 'DeleteOptions' };

interface RawOptions {
  gracePeriodSeconds: number | undefined;
  orphanDependents: boolean | undefined;
  propagationPolicy: string | undefined;
  uid: string | undefined;
  resourceVersion: string | undefined;
  dryRun: readonly unknown[];
  ignoreReadError: boolean | undefined;
}

/** Rejects unknown values and contradictory options with 422: see docs/reference/api-rules.md#options-of-a-delete. */
function checked(raw: RawOptions): DeleteParameters {
  const { gracePeriodSeconds, orphanDependents, propagationPolicy, uid, resourceVersion } = raw;
  const errors: FieldError[] = dryRunErrors(raw.dryRun);
  if (propagationPolicy !== undefined && orphanDependents !== undefined) {
    errors.push(
      fieldError.invalid(
        'propagationPolicy',
        propagationPolicy,
        'orphanDependents and deletionPropagation cannot be both set',
      ),
    );
  } else if (propagationPolicy !== undefined && !policies.includes(propagationPolicy as PropagationPolicy)) {
    errors.push(fieldError.notSupported('propagationPolicy', propagationPolicy, [...policies, 'nil']));
  }
  if (errors.length > 0) throw statusErrors.invalid(optionsKind, '', errors);
  return {
    dryRun: raw.dryRun.includes('All'),
    ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    ...(orphanDependents === undefined ? {} : { orphanDependents }),
    ...(propagationPolicy === undefined ? {} : { propagationPolicy: propagationPolicy as PropagationPolicy }),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    ...(raw.ignoreReadError ? { ignoreStoreReadErrorWithClusterBreakingPotential: true } : {}),
  };
}

/**
 * DeleteOptions from the query, for a DELETE without a body. For a collection `resourceVersion` is a parameter of the
 * list and not a precondition: see docs/reference/api-rules.md#options-of-a-delete.
 */
export function deleteParametersFromQuery(query: QueryParameters, collection: boolean): DeleteParameters {
  return checked({
    gracePeriodSeconds: integerParameter(query, 'gracePeriodSeconds'),
    orphanDependents: query.boolean('orphanDependents'),
    propagationPolicy: query.first('propagationPolicy') || undefined,
    uid: query.first('uid') || undefined,
    resourceVersion: collection ? undefined : query.first('resourceVersion') || undefined,
    dryRun: query.all('dryRun'),
    ignoreReadError: query.boolean('ignoreStoreReadErrorWithClusterBreakingPotential'),
  });
}

function wrongType(field: string, expected: string): never {
  throw statusErrors.badRequest(`DeleteOptions in the body cannot be decoded: ${field}: expected ${expected}`);
}

/** A field of a decoded object: undefined when absent or null, 400 when of another JSON type. */
function member<T>(
  object: Readonly<Record<string, unknown>>,
  name: string,
  expected: string,
  is: (value: unknown) => value is T,
): T | undefined {
  const value = Object.hasOwn(object, name) ? object[name] : undefined;
  if (value === undefined || value === null) return undefined;
  return is(value) ? value : wrongType(name, expected);
}

const isString = (value: unknown): value is string => typeof value === 'string';
const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean';
const isInteger = (value: unknown): value is number => Number.isSafeInteger(value);
const isStrings = (value: unknown): value is string[] => Array.isArray(value) && value.every(isString);

/**
 * DeleteOptions from a decoded body; the query is ignored. `kind` and `apiVersion` are optional.
 *
 * @param apiVersion group version of the resource, which is also accepted as the version of DeleteOptions
 */
export function deleteParametersFromBody(body: unknown, apiVersion: string): DeleteParameters {
  if (!isJsonObject(body)) return wrongType('body', 'an object');
  const kind = member(body, 'kind', 'a string', isString) ?? '';
  const version = member(body, 'apiVersion', 'a string', isString) ?? '';
  if (kind !== '' && kind !== 'DeleteOptions') {
    throw statusErrors.badRequest(
      `${kind} in version ${JSON.stringify(version)} cannot be handled as a DeleteOptions: unexpected kind`,
    );
  }
  if (version !== '' && version !== 'v1' && version !== 'meta.k8s.io/v1' && version !== apiVersion) {
    throw statusErrors.badRequest(`no kind "DeleteOptions" is registered for version ${JSON.stringify(version)}`);
  }
  const preconditions = member(body, 'preconditions', 'an object', isJsonObject) ?? {};
  return checked({
    gracePeriodSeconds: member(body, 'gracePeriodSeconds', 'an integer', isInteger),
    orphanDependents: member(body, 'orphanDependents', 'a boolean', isBoolean),
    propagationPolicy: member(body, 'propagationPolicy', 'a string', isString) || undefined,
    uid: member(preconditions, 'uid', 'a string', isString),
    resourceVersion: member(preconditions, 'resourceVersion', 'a string', isString),
    dryRun: member(body, 'dryRun', 'a list of strings', isStrings) ?? [],
    ignoreReadError: member(body, 'ignoreStoreReadErrorWithClusterBreakingPotential', 'a boolean', isBoolean),
  });
}

const includes: readonly IncludeObject[] = ['None', 'Metadata', 'Object'];

/** What the rows of a Table contain. @throws StatusError 400 for an unknown value */
export function includeObjectOf(query: QueryParameters): IncludeObject {
  const value = (query.first('includeObject') || 'Metadata') as IncludeObject;
  if (!includes.includes(value)) {
    throw statusErrors.badRequest(
      `Unable to convert to Table as requested: unrecognized includeObject value: ${JSON.stringify(value)}`,
    );
  }
  return value;
}
