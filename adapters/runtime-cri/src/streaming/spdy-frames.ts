/** The frame types of SPDY/3.1 that a client of a streaming server uses. */
export const FrameType = { synStream: 1, reset: 3, ping: 6, goAway: 7 } as const;
const finFlag = 1;
const version = 3;
const headerBytes = 8;

export type Frame =
  | { readonly kind: 'data'; readonly streamId: number; readonly last: boolean; readonly content: Buffer }
  | { readonly kind: 'control'; readonly type: number; readonly last: boolean; readonly content: Buffer };

export function dataFrame(streamId: number, content: Buffer, last: boolean): Buffer {
  const frame = Buffer.allocUnsafe(headerBytes + content.length);
  frame.writeUInt32BE(streamId, 0);
  frame.writeUInt32BE(content.length, 4);
  frame[4] = last ? finFlag : 0;
  content.copy(frame, headerBytes);
  return frame;
}

export function controlFrame(type: number, content: Buffer, flags = 0): Buffer {
  const frame = Buffer.allocUnsafe(headerBytes + content.length);
  frame.writeUInt16BE(0x8000 | version, 0);
  frame.writeUInt16BE(type, 2);
  frame.writeUInt32BE(content.length, 4);
  frame[4] = flags;
  content.copy(frame, headerBytes);
  return frame;
}

/** Reads the frame at the beginning of `bytes`; undefined when it is incomplete. */
export function readFrame(bytes: Buffer): { readonly frame: Frame; readonly length: number } | undefined {
  if (bytes.length < headerBytes) return undefined;
  const length = headerBytes + (bytes.readUInt32BE(4) & 0xffffff);
  if (bytes.length < length) return undefined;
  const content = bytes.subarray(headerBytes, length);
  const last = ((bytes[4] ?? 0) & finFlag) !== 0;
  const first = bytes.readUInt32BE(0);
  if (first < 0x80000000) return { frame: { kind: 'data', streamId: first, last, content }, length };
  return { frame: { kind: 'control', type: first & 0xffff, last, content }, length };
}

/** An empty stored block, after which readers deliver all preceding data. */
const flush = Buffer.of(0, 0, 0, 0xff, 0xff);

/**
 * Writes the header blocks of one connection, which form one zlib stream. The blocks are stored without compression, so
 * the dictionary of the protocol is not needed.
 */
export class HeaderBlocks {
  #started = false;

  write(headers: Readonly<Record<string, string>>): Buffer {
    const entries = Object.entries(headers);
    const plain = Buffer.concat([
      uint32(entries.length),
      ...entries.flatMap(([name, value]) => [sized(name.toLowerCase()), sized(value)]),
    ]);
    const stored = Buffer.alloc(5);
    stored.writeUInt16LE(plain.length, 1);
    stored.writeUInt16LE(~plain.length & 0xffff, 3);
    const begin = this.#started ? Buffer.alloc(0) : Buffer.of(0x78, 0x01);
    this.#started = true;
    return Buffer.concat([begin, stored, plain, flush]);
  }
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function sized(text: string): Buffer {
  const bytes = Buffer.from(text, 'utf8');
  return Buffer.concat([uint32(bytes.length), bytes]);
}
