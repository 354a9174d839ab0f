import type { DeleteOptions, GetOptions, ListOptions, MutateOptions, WatchOptions } from '@keelson/core';

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
export function mutateQuery({ dryRun, fieldManager, fieldValidation }: MutateOptions): string {
  return queryText({ dryRun: dryRun ? 'All' : undefined, fieldManager, fieldValidation });
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
