import type { Reader } from 'protobufjs/minimal.js';
import { library } from './library.ts';
import { reading } from './protobuf-syntax-error.ts';
import { delimitedEnd, requireEnd, skipField, tagOf, WireType } from './wire.ts';

const field1 = tagOf(1, WireType.delimited);
const field2 = tagOf(2, WireType.delimited);

/** What a watch frame holds behind its length. */
export interface ProtobufEvent {
  readonly type: string;
  /** The whole envelope of the object; a view into the frame. */
  readonly object: Buffer;
}

/**
 * Reads the WatchEvent of a frame, for clients; the four bytes of length before it are the business of whoever reads
 * the stream.
 *
 * @throws ProtobufSyntaxError
 */
export function decodeProtobufEvent(bytes: Buffer): ProtobufEvent {
  return reading(() => {
    const reader = library().Reader.create(bytes);
    let type = '';
    let object = bytes.subarray(0, 0);
    while (reader.pos < bytes.length) {
      const tag = reader.tag();
      if (tag === field1) type = reader.string();
      else if (tag === field2) object = readRaw(reader) ?? object;
      else skipField(reader, tag);
    }
    return { type, object };
  });
}

function readRaw(reader: Reader): Buffer | undefined {
  const end = delimitedEnd(reader);
  let raw: Buffer | undefined;
  while (reader.pos < end) {
    const tag = reader.tag();
    if (tag === field1) raw = reader.bytes() as Buffer;
    else skipField(reader, tag);
  }
  requireEnd(reader, end);
  return raw;
}
