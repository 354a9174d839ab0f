import { listMetaSchema } from '../../kind/object-meta-schema.ts';
import { type ListPage, listMetadata } from '../list-envelope.ts';
import { freshPieces, type PieceSource, pieceBytes } from '../pieces.ts';
import type { ListBody } from '../wire-form.ts';
import { envelopeTail, rawTag } from './envelope.ts';
import { protobufEncoderOf } from './protobuf-codec.ts';
import type { ProtobufShape } from './protobuf-shape.ts';
import { putVarint, tagOf, varintLength, WireType } from './wire.ts';

/** Objects encoded between two chances for others to run. */
const stride = 32;
const nothing = Buffer.alloc(0);

/**
 * The body of a list. Its length stands near its beginning, so every item has to be there before the first byte of them
 * goes out; while they are encoded, empty pieces let the transport give way to others.
 */
export function protobufList(shape: ProtobufShape, page: ListPage, source: PieceSource = freshPieces): ListBody {
  return { head: shape.list.head, items: pieces(shape, page, source), tail: envelopeTail, ready: false };
}

function* pieces(shape: ProtobufShape, page: ListPage, source: PieceSource): Generator<Buffer, void, undefined> {
  const items: Buffer[] = [];
  let size = 0;
  for (const object of page.list.objects()) {
    const item = object.encoded(shape.representation);
    items.push(item);
    size += item.length;
    if (items.length % stride === 0) yield nothing;
  }
  yield listStart(shape, page, size);
  yield* joined(items, tagOf(shape.list.items, WireType.delimited), source);
}

/** Tag and length of the list's message, and its metadata. The order of fields in a message is free. */
function listStart(shape: ProtobufShape, page: ListPage, itemBytes: number): Buffer {
  const metadata = protobufEncoderOf(listMetaSchema)(listMetadata(page));
  const field = 1 + varintLength(metadata.length) + metadata.length;
  const start = Buffer.allocUnsafe(1 + varintLength(field + itemBytes) + field);
  start[0] = rawTag;
  let at = putVarint(start, 1, field + itemBytes);
  start[at++] = tagOf(shape.list.metadata, WireType.delimited);
  at = putVarint(start, at, metadata.length);
  metadata.copy(start, at);
  return start;
}

/**
 * Joins items to pieces of about 64 KiB, each under the list's own tag; big ones are handed on without being copied.
 */
function* joined(items: readonly Buffer[], tag: number, source: PieceSource): Generator<Buffer, void, undefined> {
  let piece = source.take();
  let end = 0;
  for (const item of items) {
    if (end + item.length > pieceBytes && end > 0) {
      yield piece.subarray(0, end);
      piece = source.take();
      end = 0;
    }
    if (item.length > pieceBytes) {
      if (tag === rawTag) yield item;
      else {
        yield Buffer.of(tag);
        yield item.subarray(1);
      }
    } else {
      // Cheaper than `copy`, which looks at its arguments at length.
      piece.set(item, end);
      piece[end] = tag;
      end += item.length;
    }
  }
  if (end > 0) yield piece.subarray(0, end);
}
