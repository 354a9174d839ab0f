import type { Status } from '../meta/status.ts';
import type { KubeObject } from '../meta/types.ts';
import type {
  EventRepresentation,
  PartForm,
  PieceSource,
  SharedPart,
  StoredList,
} from '../storage/resource-storage.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import type { Media } from './media-type.ts';

/**
 * What a client requests of objects: whole objects, metadata, or a table. See
 * docs/reference/api-rules.md#tables-and-metadata-only.
 */
export type FormTarget =
  | { readonly as: 'Object' }
  | { readonly as: 'PartialObjectMetadata'; readonly version: string }
  | { readonly as: 'Table'; readonly version: string; readonly includeObject: IncludeObject };

/** The part of its object that a Table row contains. */
export type IncludeObject = 'None' | 'Metadata' | 'Object';

/** The negotiated properties of a response about a kind. */
export interface FormRequest {
  readonly media: Media;
  readonly pretty: boolean;
  readonly target: FormTarget;
}

/** A list body in parts: `head`, the items with their separators, `tail`. */
export interface ListBody {
  readonly head: Buffer;
  /**
   * The buffers are created while the iterable is read. Buffers from the source given to {@link WireForm.list} belong
   * to the consumer. All other buffers must not be changed.
   */
  readonly items: Iterable<Buffer>;
  readonly tail: Buffer;
  /** Whether all items may be read at once, because their bytes exist already or are few. */
  readonly ready: boolean;
  /** The items of a long list in parts that other lists contain too. */
  readonly parts?: ListParts;
}

/** The items of a list with their separators, in parts. */
export interface ListParts {
  items(): Iterable<Buffer | SharedPart>;
  /** What is between `head` and the items where that depends on the total length of the items, in bytes. */
  start?(itemBytes: number): Buffer;
}

/** Longer lists are worth compressing, whatever their form is, and most of their objects belong to shared parts. */
const fewObjects = 512;

/** The parts of a list in a form; undefined when it is short or has none. */
export function partsOf({ list }: ListPage, form: PartForm): Pick<ListParts, 'items'> | undefined {
  if (list.count <= fewObjects || list.parts === undefined) return undefined;
  return { items: () => list.parts?.(form) ?? [] };
}

/** Frames of a watch, with the chunk header and trailer of HTTP/1.1 around each, and without. */
export interface EventPair {
  readonly chunked: EventRepresentation;
  readonly plain: EventRepresentation;
}

/** How the events of a watch are written. */
export interface WatchForm extends EventPair {
  readonly contentType: string;
  /**
   * Encoding of the first event, where it differs from that of all others: only in the first event of a watch, a Table
   * describes its columns.
   */
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
  /** Body of an answer that is not stored: dry runs, exports, subresource bodies. A Status is never converted. */
  value(object: KubeObject | Status): Buffer;
  list(page: ListPage, pieces?: PieceSource): ListBody;
  /** Undefined when this form does not support watches. */
  watch(): WatchForm | undefined;
}

let last = 0;

/** An id for a representation that is unique in this process. `what` makes it readable in debuggers. */
export function representationId(what: string): string {
  last += 1;
  return `${what}#${last}`;
}

/** Consecutive texts are joined into buffers of about this many characters. */
const pieceLength = 32 * 1024;

/** Joins texts into larger buffers, so that a list of small rows does not become many small writes. */
export function* textPieces(texts: Iterable<string>): Generator<Buffer, void, undefined> {
  let piece = '';
  for (const text of texts) {
    piece += text;
    if (piece.length < pieceLength) continue;
    yield Buffer.from(piece);
    piece = '';
  }
  if (piece !== '') yield Buffer.from(piece);
}

/** A page of a list and the text that continues it, '' at the end. */
export interface ListPage {
  readonly list: StoredList;
  readonly continue: string;
}

/** `metadata` of a list in wire order. */
export interface ListMetadata {
  resourceVersion: string;
  continue?: string;
  remainingItemCount?: number;
}

/** The fields of a list or Table before its items. */
export interface ListEnvelope {
  readonly kind: string;
  readonly apiVersion: string;
  /** `items`, or `rows` of a Table. */
  readonly field: 'items' | 'rows';
  /** Fields between metadata and items. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

/** End of a list body in compact JSON. */
export const listTail = Buffer.from(']}\n');

/** `metadata` of a page: see docs/reference/api-rules.md#continuing-a-list. */
export function listMetadata(page: ListPage): ListMetadata {
  const metadata: ListMetadata = { resourceVersion: String(page.list.revision) };
  if (page.continue !== '') {
    metadata.continue = page.continue;
    if (page.list.remaining !== undefined) metadata.remainingItemCount = page.list.remaining;
  }
  return metadata;
}

/** Beginning of a list body in compact JSON, up to and including the bracket that opens the items. */
export function listHead(envelope: ListEnvelope, metadata: ListMetadata): string {
  const text = JSON.stringify({
    kind: envelope.kind,
    apiVersion: envelope.apiVersion,
    metadata,
    ...envelope.extra,
    [envelope.field]: [],
  });
  return text.slice(0, -2);
}
