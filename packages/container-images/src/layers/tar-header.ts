/** Fields of a tar header. Names are bytes as Latin-1 text. */
export interface TarHeader {
  readonly name: string;
  readonly linkName: string;
  readonly type: string;
  /** Bytes of content without padding. */
  readonly size: number;
  /** True when another header block follows, which occurs for sparse files of the old GNU format. */
  readonly extended: boolean;
}

export const blockSize = 512;

/** Parses a header; undefined for a block of zeros, two of which end an archive. @throws Error */
export function parseTarHeader(block: Buffer): TarHeader | undefined {
  if (block.every((byte) => byte === 0)) return undefined;
  if (numberAt(block, 148, 8) !== checksum(block)) throw new Error('invalid tar header');
  const type = String.fromCharCode(block[156] ?? 0);
  // In old GNU archives, the bytes of the POSIX prefix have another meaning.
  const posix = block.toString('latin1', 257, 263) === 'ustar\0';
  const prefix = posix ? textAt(block, 345, 155) : '';
  const name = textAt(block, 0, 100);
  return {
    name: prefix === '' ? name : `${prefix}/${name}`,
    linkName: textAt(block, 157, 100),
    type: type === '\0' ? '0' : type,
    // Entries of these types have no content. Some writers set the size of a link to that of its target.
    size: '123456'.includes(type) ? 0 : numberAt(block, 124, 12),
    extended: type === 'S' && block[482] !== 0,
  };
}

/** Parses the records of a pax header, as Latin-1 text. */
export function parsePaxRecords(body: Buffer): Map<string, string> {
  const records = new Map<string, string>();
  let position = 0;
  while (position < body.length && body[position] !== 0) {
    const space = body.indexOf(0x20, position);
    const length = Number(body.toString('latin1', position, space));
    if (space < 0 || !Number.isInteger(length) || length <= space - position || position + length > body.length) {
      throw new Error('invalid pax header');
    }
    const record = body.toString('latin1', space + 1, position + length - 1);
    const equals = record.indexOf('=');
    records.set(record.slice(0, equals), record.slice(equals + 1));
    position += length;
  }
  return records;
}

function checksum(block: Buffer): number {
  let sum = 0;
  for (const [position, byte] of block.entries()) sum += position >= 148 && position < 156 ? 0x20 : byte;
  return sum;
}

function textAt(block: Buffer, start: number, length: number): string {
  const end = block.subarray(start, start + length).indexOf(0);
  return block.toString('latin1', start, end < 0 ? start + length : start + end);
}

/** A number in octal digits, or in big-endian bytes when the highest bit is set. */
function numberAt(block: Buffer, start: number, length: number): number {
  const field = block.subarray(start, start + length);
  if (((field[0] ?? 0) & 0x80) !== 0) {
    const value = field.subarray(1).reduce((sum, byte) => sum * 256 + byte, 0);
    if (!Number.isSafeInteger(value)) throw new Error('a tar header has an invalid number');
    return value;
  }
  const text = textAt(block, start, length).trim();
  if (!/^[0-7]*$/.test(text)) throw new Error('a tar header has an invalid number');
  return text === '' ? 0 : Number.parseInt(text, 8);
}
