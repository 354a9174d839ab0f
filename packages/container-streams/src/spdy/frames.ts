/** Types of control frames. */
export const FrameType = {
  synStream: 1,
  synReply: 2,
  rstStream: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  headers: 8,
  windowUpdate: 9,
} as const;

/** Reasons of a reset of a stream. */
export const ResetReason = { protocolError: 1, refusedStream: 3, cancel: 5 } as const;

const finFlag = 1;
const version = 3;
const headerBytes = 8;
const controlBit = 0x8000_0000;
export const streamIdMask = 0x7fff_ffff;

/** The peer violates the protocol. The connection cannot continue. */
export class SpdyProtocolError extends Error {
  override readonly name = 'SpdyProtocolError';
}

export interface ControlFrame {
  readonly kind: 'control';
  readonly type: number;
  /** True for the last frame that the sender sends on its stream. */
  readonly last: boolean;
  readonly content: Buffer;
}

/** A received part of a data frame. Frames may have 16 MiB and are therefore not buffered as a whole. */
export interface DataPiece {
  readonly kind: 'data';
  readonly streamId: number;
  /** True for the last part of the last frame that the sender sends on its stream. */
  readonly last: boolean;
  readonly content: Buffer;
}

export function dataHeader(streamId: number, length: number, last: boolean): Buffer {
  const header = Buffer.allocUnsafe(headerBytes);
  header.writeUInt32BE(streamId, 0);
  header.writeUInt32BE(length, 4);
  header[4] = last ? finFlag : 0;
  return header;
}

export function controlFrame(type: number, content: Buffer, last = false): Buffer {
  const header = Buffer.allocUnsafe(headerBytes);
  header.writeUInt16BE((controlBit >>> 16) | version, 0);
  header.writeUInt16BE(type, 2);
  header.writeUInt32BE(content.length, 4);
  header[4] = last ? finFlag : 0;
  return Buffer.concat([header, content]);
}

/** A control frame that consists of 32-bit numbers. */
export function numbersFrame(type: number, ...values: number[]): Buffer {
  const content = Buffer.alloc(4 * values.length);
  for (const [index, value] of values.entries()) content.writeUInt32BE(value, 4 * index);
  return controlFrame(type, content);
}

/** The frame SYN_REPLY, with a block of headers. */
export function synReply(streamId: number, block: Buffer): Buffer {
  const id = Buffer.alloc(4);
  id.writeUInt32BE(streamId);
  return controlFrame(FrameType.synReply, Buffer.concat([id, block]));
}

/** The number at an offset of a control frame. @throws SpdyProtocolError when the frame is too short. */
export function numberAt(content: Buffer, place: number): number {
  if (content.length < place + 4) throw new SpdyProtocolError('a control frame is too short');
  return content.readUInt32BE(place);
}

/** A data frame that was not received completely. */
interface OpenFrame {
  readonly streamId: number;
  readonly last: boolean;
  left: number;
}

/** Splits received data into frames. Buffers at most one control frame, of at most `maxControlBytes`. */
export class FrameReader {
  readonly #maxControlBytes: number;
  #rest: Buffer = Buffer.alloc(0);
  #open: OpenFrame | undefined;

  constructor(maxControlBytes: number) {
    this.#maxControlBytes = maxControlBytes;
  }

  /** The control frames and data pieces that a chunk completes. @throws SpdyProtocolError */
  *read(chunk: Buffer): Generator<ControlFrame | DataPiece> {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    this.#rest = Buffer.alloc(0);
    while (bytes.length > 0) {
      if (this.#open !== undefined) {
        const content = bytes.subarray(0, this.#open.left);
        bytes = bytes.subarray(content.length);
        yield this.#piece(this.#open, content);
        continue;
      }
      if (bytes.length < headerBytes) break;
      const first = bytes.readUInt32BE(0);
      const last = ((bytes[4] ?? 0) & finFlag) !== 0;
      const length = bytes.readUInt32BE(4) & 0xff_ffff;
      if (first < controlBit) {
        this.#open = { streamId: first, last, left: length };
        bytes = bytes.subarray(headerBytes);
        if (length === 0) yield this.#piece(this.#open, bytes.subarray(0, 0));
        continue;
      }
      if (((first >>> 16) & 0x7fff) !== version) throw new SpdyProtocolError('a control frame is of another version');
      if (length > this.#maxControlBytes) throw new SpdyProtocolError(`a control frame has ${length} bytes`);
      if (bytes.length < headerBytes + length) break;
      yield { kind: 'control', type: first & 0xffff, last, content: bytes.subarray(headerBytes, headerBytes + length) };
      bytes = bytes.subarray(headerBytes + length);
    }
    // The remaining bytes are copied, so that the memory of the received chunk can be freed.
    this.#rest = Buffer.from(bytes);
  }

  #piece(open: OpenFrame, content: Buffer): DataPiece {
    open.left -= content.length;
    if (open.left === 0) this.#open = undefined;
    return { kind: 'data', streamId: open.streamId, last: open.last && open.left === 0, content };
  }
}
