import {
  type DeleteOptions,
  type GetOptions,
  type GroupVersionResource,
  type ListOptions,
  type MutateOptions,
  statusErrors,
  type WatchOptions,
} from '@keelson/core';

/** The target of a request; without `name` it is the collection. */
export interface PathTarget {
  readonly resource: GroupVersionResource;
  readonly namespace?: string | undefined;
  readonly name?: string;
  readonly subresource?: string;
}

/**
 * Encodes one segment of a path. An empty name would address the collection instead of an object, and dots or slashes
 * another path, so they are rejected.
 */
function segment(what: string, text: string): string {
  if (text === '') throw statusErrors.badRequest(`${what} is required`);
  if (text === '.' || text === '..' || text.includes('/') || text.includes('%')) {
    throw statusErrors.badRequest(`${what} may not be "." or "..", nor contain "/" or "%": ${JSON.stringify(text)}`);
  }
  return encodeURIComponent(text);
}

/** `/api/v1`, `/apis/{group}/{version}`. */
export function groupVersionPath({ group, version }: { readonly group: string; readonly version: string }): string {
  return group === ''
    ? `/api/${segment('version', version)}`
    : `/apis/${segment('group', group)}/${segment('version', version)}`;
}

/** Path of an object, a collection or a subresource. */
export function resourcePath({ resource, namespace, name, subresource }: PathTarget): string {
  let path = groupVersionPath(resource);
  if (namespace !== undefined && namespace !== '') path += `/namespaces/${segment('namespace', namespace)}`;
  path += `/${segment('resource', resource.resource)}`;
  if (name !== undefined) path += `/${segment('name', name)}`;
  if (subresource !== undefined) path += `/${segment('subresource', subresource)}`;
  return path;
}

type Value = string | number | boolean | undefined;

function queryText(values: Readonly<Record<string, Value>>): string {
  const parts: string[] = [];
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined && value !== '') parts.push(`${name}=${encodeURIComponent(String(value))}`);
  }
  return parts.length === 0 ? '' : `?${parts.join('&')}`;
}

/** Query of a GET of one object. */
export function getQuery({ resourceVersion }: GetOptions): string {
  return queryText({ resourceVersion });
}

function selection(options: ListOptions | WatchOptions): Record<string, Value> {
  const { labelSelector, fieldSelector, resourceVersion, resourceVersionMatch } = options;
  return { labelSelector, fieldSelector, resourceVersion, resourceVersionMatch };
}

/** Query of a list or of a deletion of a collection. */
export function listQuery(options: ListOptions): string {
  return queryText({ ...selection(options), limit: options.limit, continue: options.continue });
}

/** Query of a watch. */
export function watchQuery(options: WatchOptions): string {
  const { allowWatchBookmarks, sendInitialEvents, timeoutSeconds } = options;
  return queryText({ ...selection(options), allowWatchBookmarks, sendInitialEvents, timeoutSeconds, watch: true });
}

/** Query of a write. */
export function mutateQuery({ dryRun, fieldManager, fieldValidation, force }: MutateOptions): string {
  return queryText({ dryRun: dryRun ? 'All' : undefined, fieldManager, fieldValidation, force });
}

/** Body of a DELETE; undefined without options. */
export function deleteBody(options: DeleteOptions): object | undefined {
  const { gracePeriodSeconds, propagationPolicy, orphanDependents, preconditions, dryRun } = options;
  const body = {
    ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    ...(preconditions === undefined ? {} : { preconditions }),
    ...(orphanDependents === undefined ? {} : { orphanDependents }),
    ...(propagationPolicy === undefined ? {} : { propagationPolicy }),
    ...(dryRun ? { dryRun: ['All'] } : {}),
    ...(options.ignoreStoreReadErrorWithClusterBreakingPotential
      ? { ignoreStoreReadErrorWithClusterBreakingPotential: true }
      : {}),
  };
  return Object.keys(body).length === 0 ? undefined : { kind: 'DeleteOptions', apiVersion: 'v1', ...body };
}
