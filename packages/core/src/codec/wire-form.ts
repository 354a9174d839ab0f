import type { Status } from '../meta/status.ts';
import type { KubeObject } from '../meta/types.ts';
import type { EventRepresentation } from '../storage/resource-storage.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import type { ListPage } from './list-envelope.ts';
import type { Media } from './media-type.ts';
import type { PieceSource } from './pieces.ts';

/**
 * What a client requests of objects: whole objects, metadata, or a table. See
 * docs/reference/api-rules.md#tables-and-metadata-only.
 */
export type FormTarget =
  | { readonly as: 'Object' }
  | { readonly as: 'PartialObjectMetadata'; readonly version: string }
  | { readonly as: 'Table'; readonly version: string; readonly includeObject: IncludeObject };

/** What a Table row carries of its object. */
export type IncludeObject = 'None' | 'Metadata' | 'Object';

/** Everything that decides how an answer about a kind is written. */
export interface FormRequest {
  readonly media: Media;
  readonly pretty: boolean;
  readonly target: FormTarget;
}

/** A list body in parts: `head`, the items with their separators, `tail`. */
export interface ListBody {
  readonly head: Buffer;
  /**
   * Made while they are taken. Those that are of the source given to {@link WireForm.list} are the taker's, all others
   * are not to be changed.
   */
  readonly items: Iterable<Buffer>;
  readonly tail: Buffer;
  /** True when all items may be taken at once: their bytes are there already, or few. */
  readonly ready: boolean;
}

/** Frames of a watch, with the chunk header and trailer of HTTP/1.1 around each, and without. */
export interface EventPair {
  readonly chunked: EventRepresentation;
  readonly plain: EventRepresentation;
}

/** How the events of a watch are written. */
export interface WatchForm extends EventPair {
  readonly contentType: string;
  /** Form of the very first event where it differs: only there a Table describes its columns. */
  readonly first?: EventPair;
  /** The ERROR event that ends a stream, without chunk header. */
  errorFrame(status: Status): Buffer;
}

/**
 * How answers about one kind are written in one negotiated form. Bodies are whole documents, final newline included.
 * Every medium has its own implementation; callers see no difference.
 */
export interface WireForm {
  readonly contentType: string;
  /** Body of an answer that is a stored object. */
  stored(object: StoredObject): Buffer;
  /**
   * Body of an answer that is not stored: dry runs, exports, subresource bodies. A Status is written as it is in any
   * form.
   */
  value(object: KubeObject | Status): Buffer;
  list(page: ListPage, pieces?: PieceSource): ListBody;
  /** Undefined: there are no streams of this form. */
  watch(): WatchForm | undefined;
}
