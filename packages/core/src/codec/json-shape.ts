import type { KubeObject } from '../meta/types.ts';
import type { Representation } from '../storage/resource-storage.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import type { ListEnvelope } from './list-envelope.ts';

/**
 * What JSON says about objects, apart from how it is laid out (compact, indented, as YAML). An item is what a list
 * holds for each object: the object, its metadata, or a table row.
 */
export interface JsonShape {
  /** Compact JSON of an item as objects keep it; undefined when it is another one every moment. */
  readonly representation: Representation | undefined;
  /** Compact JSON of an item, made now. */
  text(object: StoredObject): string;
  /** Compact JSON of the item for the empty object of a bookmark. */
  bookmark(object: StoredObject): Buffer;
  /** The whole body for an object that is not stored. */
  document(object: KubeObject): unknown;
  /** Around the items of a list. */
  readonly list: ListEnvelope;
  /**
   * Set when a single object is also an envelope, with one item: around it, and around the items of all events of a
   * watch but the first.
   */
  readonly single?: { readonly first: ListEnvelope; readonly next: ListEnvelope };
}
