import { constants, createInflate, type Inflate } from 'node:zlib';
import { headerDictionary } from './dictionary.ts';
import { SpdyProtocolError } from './frames.ts';

export type SpdyHeaders = ReadonlyMap<string, string>;

/** An empty stored block, after which a reader returns all content so far. */
const flush = Buffer.of(0, 0, 0, 0xff, 0xff);
const zlibBegin = Buffer.of(0x78, 0x01);

function sized(text: string): Buffer {
  const bytes = Buffer.from(text, 'utf8');
  return Buffer.concat([uint32(bytes.length), bytes]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** A block of headers before compression: a count, then names and values with their lengths. */
export function plainHeaderBlock(headers: Readonly<Record<string, string>>): Buffer {
  const entries = Object.entries(headers);
  return Buffer.concat([
    uint32(entries.length),
    ...entries.flatMap(([name, value]) => [sized(name.toLowerCase()), sized(value)]),
  ]);
}

/**
 * Writes the header blocks of one connection, which form one zlib stream. Blocks are stored without compression,
 * because answers have almost no headers.
 */
export class HeaderWriter {
  #begun = false;

  write(headers: Readonly<Record<string, string>>): Buffer {
    const plain = plainHeaderBlock(headers);
    const stored = Buffer.alloc(5);
    stored.writeUInt16LE(plain.length, 1);
    stored.writeUInt16LE(~plain.length & 0xffff, 3);
    const begin = this.#begun ? Buffer.alloc(0) : zlibBegin;
    this.#begun = true;
    return Buffer.concat([begin, stored, plain, flush]);
  }
}

/** Reads the header blocks of one connection in order. A block has at most `maxBytes` after decompression. */
export class HeaderReader {
  readonly #maxBytes: number;
  readonly #inflate: Inflate;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
    const options = {
      dictionary: headerDictionary,
      flush: constants.Z_SYNC_FLUSH,
      readableHighWaterMark: maxBytes + 1,
    };
    this.#inflate = createInflate(options);
    // A pending `read` reports the error. Errors at other times are ignored.
    this.#inflate.on('error', () => {});
    // Decompressed bytes are read only at the end of a block, so more than `maxBytes` unread bytes are a block that is
    // too long.
    this.#inflate.on('readable', () => {
      if (this.#inflate.readableLength > maxBytes)
        this.#inflate.destroy(new SpdyProtocolError('a block of headers is too long'));
    });
  }

  /** Reads one block. Calls must not overlap. @throws SpdyProtocolError */
  async read(block: Buffer): Promise<SpdyHeaders> {
    const plain = await this.#unfold(block);
    if (plain.length > this.#maxBytes) throw new SpdyProtocolError('a block of headers is too long');
    return parseHeaderBlock(plain);
  }

  close(): void {
    this.#inflate.destroy();
  }

  #unfold(block: Buffer): Promise<Buffer> {
    const inflate = this.#inflate;
    return new Promise((resolve, reject) => {
      // The callback of a pending write is not called when the stream is destroyed.
      const onClose = () => reject(unreadable(inflate.errored));
      if (inflate.destroyed) onClose();
      inflate.once('close', onClose);
      inflate.write(block, (error) => {
        inflate.off('close', onClose);
        if (error) reject(unreadable(error));
        // With the length: since Node 26 a read without it returns only the first chunk.
        else resolve((inflate.read(inflate.readableLength) as Buffer | null) ?? Buffer.alloc(0));
      });
    });
  }
}

function unreadable(error: Error | null): Error {
  if (error instanceof SpdyProtocolError) return error;
  return new SpdyProtocolError(`a block of headers cannot be read: ${error?.message ?? 'the connection is closed'}`);
}

function parseHeaderBlock(plain: Buffer): SpdyHeaders {
  let place = 0;
  const number = () => {
    if (place + 4 > plain.length) throw new SpdyProtocolError('a block of headers ends too early');
    place += 4;
    return plain.readUInt32BE(place - 4);
  };
  const word = () => {
    const length = number();
    if (place + length > plain.length) throw new SpdyProtocolError('a block of headers ends too early');
    place += length;
    return plain.toString('utf8', place - length, place);
  };
  const headers = new Map<string, string>();
  for (let left = number(); left > 0; left -= 1) {
    const name = word().toLowerCase();
    if (headers.has(name)) throw new SpdyProtocolError(`the header ${JSON.stringify(name)} occurs twice`);
    headers.set(name, word());
  }
  return headers;
}
