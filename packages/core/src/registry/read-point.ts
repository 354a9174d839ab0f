import { type StatusError, statusErrors } from '../errors/status-error.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import type { ReadPoint, StorageWatchOptions } from '../storage/resource-storage.ts';
import type { Revision } from '../storage/store.ts';
import type { SelectParameters } from './resource-service.ts';

const listOptions = { group: 'meta.k8s.io', kind: 'ListOptions' } as const;
const largestUint64 = 18446744073709551615n;

/** The parameters of a list that decide which state it shows. */
export type ListPointParameters = Pick<
  SelectParameters,
  'resourceVersion' | 'resourceVersionMatch' | 'limit' | 'continue' | 'sendInitialEvents'
>;

/** The parameters of a watch that decide where it begins. */
export type WatchPointParameters = Pick<
  SelectParameters,
  'resourceVersion' | 'resourceVersionMatch' | 'continue' | 'sendInitialEvents' | 'allowWatchBookmarks'
>;

/**
 * Reads a resourceVersion. Numbers beyond what a revision can be are kept as the greatest revision: they lie in the
 * future either way.
 *
 * @throws StatusError 400 when the text is not an unsigned 64-bit decimal number.
 */
export function parseResourceVersion(text: string): Revision {
  if (!/^[0-9]{1,20}$/.test(text) || (text.length === 20 && BigInt(text) > largestUint64)) {
    throw statusErrors.badRequest(
      `invalid resource version: ${JSON.stringify(text.slice(0, 64))}: not a decimal number of 64 bits`,
    );
  }
  return Math.min(Number(text), Number.MAX_SAFE_INTEGER);
}

/** Which state a get returns: see docs/reference/api-rules.md#state-of-a-get. */
export function getPoint(resourceVersion: string): ReadPoint {
  if (resourceVersion === '') return { at: 'latest' };
  const revision = parseResourceVersion(resourceVersion);
  return revision === 0 ? { at: 'any' } : { at: 'notOlderThan', revision };
}

function refused(errors: readonly FieldError[]): StatusError {
  return statusErrors.invalid(listOptions, '', errors);
}

function listProblems(parameters: ListPointParameters): FieldError[] {
  const { resourceVersion, resourceVersionMatch: match = '', continue: token = '' } = parameters;
  const problems: FieldError[] = [];
  if (match !== '') {
    if (resourceVersion === '') problems.push(fieldError.forbidden('resourceVersionMatch', 'needs a resourceVersion'));
    if (token !== '') problems.push(fieldError.forbidden('resourceVersionMatch', 'cannot be combined with continue'));
    if (match !== 'Exact' && match !== 'NotOlderThan') {
      problems.push(fieldError.notSupported('resourceVersionMatch', match, ['Exact', 'NotOlderThan']));
    }
    if (match === 'Exact' && resourceVersion === '0') {
      problems.push(fieldError.forbidden('resourceVersionMatch', 'Exact has no meaning for resourceVersion "0"'));
    }
  }
  if (parameters.sendInitialEvents !== undefined) {
    problems.push(fieldError.forbidden('sendInitialEvents', 'belongs to watches, not to lists'));
  }
  return problems;
}

/**
 * Which state a list returns: see docs/reference/api-rules.md#state-of-a-list. `'token'` is the state of its continue
 * token.
 *
 * @throws StatusError 422 for a combination that is not allowed, 400 for a malformed number or a resourceVersion
 *   beside continue.
 */
export function listPoint(parameters: ListPointParameters): ReadPoint | 'token' {
  const problems = listProblems(parameters);
  if (problems.length > 0) throw refused(problems);
  const { resourceVersion, resourceVersionMatch: match = '', limit = 0, continue: token = '' } = parameters;
  const revision = resourceVersion === '' ? undefined : parseResourceVersion(resourceVersion);
  if (token !== '') {
    if (revision) throw statusErrors.badRequest('specifying resource version is not allowed when using continue');
    return 'token';
  }
  if (revision === undefined) return { at: 'latest' };
  if (revision === 0) return { at: 'any' };
  const exact = match === 'Exact' || (match === '' && limit > 0);
  return exact ? { at: 'exact', revision } : { at: 'notOlderThan', revision };
}

function watchProblems(parameters: WatchPointParameters): FieldError[] {
  const { resourceVersionMatch: match = '', sendInitialEvents, continue: token = '' } = parameters;
  const problems: FieldError[] = [];
  if (sendInitialEvents !== undefined && match !== 'NotOlderThan') {
    problems.push(fieldError.forbidden('resourceVersionMatch', 'must be NotOlderThan when sendInitialEvents is given'));
  }
  if (match !== '') {
    if (sendInitialEvents === undefined) {
      problems.push(fieldError.forbidden('resourceVersionMatch', 'is for watches with sendInitialEvents only'));
    }
    if (match !== 'NotOlderThan') {
      problems.push(fieldError.notSupported('resourceVersionMatch', match, ['NotOlderThan']));
    }
    if (token !== '') problems.push(fieldError.forbidden('resourceVersionMatch', 'cannot be combined with continue'));
  }
  return problems;
}

/** Where a watch begins; `'now'` = after the current revision, without any initial event. */
export type WatchPoint = StorageWatchOptions['from'] | 'now';

/**
 * Where a watch begins: see docs/reference/api-rules.md#start-of-a-watch.
 *
 * @throws StatusError 422 for a combination that is not allowed, 400 for a malformed number.
 */
export function watchPoint(parameters: WatchPointParameters): WatchPoint {
  const problems = watchProblems(parameters);
  if (problems.length > 0) throw refused(problems);
  const { resourceVersion, sendInitialEvents, allowWatchBookmarks = false } = parameters;
  const revision = resourceVersion === '' ? undefined : parseResourceVersion(resourceVersion);
  if (sendInitialEvents === false) return revision ? { start: 'changesAfter', revision } : 'now';
  if (sendInitialEvents === undefined && revision) return { start: 'changesAfter', revision };
  return {
    start: 'state',
    fresh: revision === undefined,
    ...(revision ? { notOlderThan: revision } : {}),
    ...(sendInitialEvents && allowWatchBookmarks ? { endBookmark: true } : {}),
  };
}
