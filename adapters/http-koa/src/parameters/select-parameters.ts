import type { QueryParameters, SelectParameters } from '@keelson/core';
import { int32Parameter } from './numbers.ts';

/** Which objects a list, watch or deletecollection is about. Contradictions are for the resource service to find. */
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

/** {@link selectParameters}, without work when there is no query at all. */
export function selectParametersOf(query: QueryParameters): SelectParameters {
  return query.text === '' ? everything : selectParameters(query);
}
