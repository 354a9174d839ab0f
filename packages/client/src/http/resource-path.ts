import { type GroupVersionResource, statusErrors } from '@keelson/core';

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
