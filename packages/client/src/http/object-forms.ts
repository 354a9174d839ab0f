import type { Brand, KubeList, KubeObject } from '@keelson/core';

/**
 * Accept value for metadata alone; a server that does not know the form sends whole objects, which are then cut down
 * here.
 */
export function metadataAccept(shape: 'one' | 'list', { metaGroup }: Brand): string {
  const word = shape === 'list' ? 'PartialObjectMetadataList' : 'PartialObjectMetadata';
  return `application/json;as=${word};g=${metaGroup};v=v1,application/json`;
}

/** apiVersion, kind and metadata of an object. */
export function metadataOf({ apiVersion, kind, metadata }: KubeObject): KubeObject {
  return {
    ...(kind === undefined ? {} : { kind }),
    ...(apiVersion === undefined ? {} : { apiVersion }),
    ...(metadata === undefined ? {} : { metadata }),
  };
}

/** Servers may leave out the type of the items, which the list tells, and may write an empty list as null. */
export function completeList<T extends KubeObject>(list: KubeList<T>): KubeList<T> {
  const kind = list.kind?.endsWith('List') ? list.kind.slice(0, -4) : undefined;
  const { apiVersion } = list;
  const items = list.items ?? [];
  if (kind !== undefined && apiVersion !== undefined) {
    items.forEach((item, at) => {
      if (item.kind === undefined || item.apiVersion === undefined) items[at] = { kind, apiVersion, ...item };
    });
  }
  return { ...list, metadata: list.metadata ?? {}, items };
}
