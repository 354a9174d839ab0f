import {
  type DeleteParameters,
  type FieldError,
  fieldError,
  type PropagationPolicy,
  type QueryParameters,
  statusErrors,
} from '@keelson/core';
import { integerParameter } from './numbers.ts';
import { dryRunErrors } from './write-parameters.ts';

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

/** Rejects unknown values and contradicting options with 422: see docs/reference/api-rules.md#options-of-a-delete. */
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
 * list and no precondition: see docs/reference/api-rules.md#options-of-a-delete.
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
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isStrings = (value: unknown): value is string[] => Array.isArray(value) && value.every(isString);

/**
 * DeleteOptions from a decoded body, which counts alone: the query is not looked at. `kind` and `apiVersion` may be
 * missing.
 *
 * @param apiVersion group version of the resource, in which DeleteOptions is also known
 */
export function deleteParametersFromBody(body: unknown, apiVersion: string): DeleteParameters {
  if (!isObject(body)) return wrongType('body', 'an object');
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
  const preconditions = member(body, 'preconditions', 'an object', isObject) ?? {};
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
