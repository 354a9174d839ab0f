import type { KubeList, KubeObject } from '@keelson/core';
import type { Brand } from '@keelson/core/internal';

/**
 * Accept value for metadata only. A server that does not support it sends whole objects, of which the client then keeps
 * the metadata.
 */
export function metadataAccept(shape: 'one' | 'list', { metaGroup }: Brand): string {
  const kind = shape === 'list' ? 'PartialObjectMetadataList' : 'PartialObjectMetadata';
  return `application/json;as=${kind};g=${metaGroup};v=v1,application/json`;
}

/** apiVersion, kind and metadata of an object. */
export function metadataOf({ apiVersion, kind, metadata }: KubeObject): KubeObject {
  return {
    ...(kind === undefined ? {} : { kind }),
    ...(apiVersion === undefined ? {} : { apiVersion }),
    ...(metadata === undefined ? {} : { metadata }),
  };
}

/** Servers may omit the type of the items, which is derived from the list, and may send null for an empty list. */
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
