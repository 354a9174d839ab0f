import { ByteReader } from './byte-reader.ts';
import { cleanPath, type LayerChanges, noteMark } from './layer-changes.ts';
import { blockSize, parsePaxRecords, parseTarHeader, type TarHeader } from './tar-header.ts';

/** Maximum bytes of a pax header or long name. */
const maxMetadataBytes = 1 << 20;

/**
 * Copies a tar archive without the entries that are not files of the layer itself: whiteouts, and hard links to files
 * of lower layers. These are recorded in `changes`.
 * @throws Error for an invalid archive, and for entries outside of the root
 */
export async function* filterLayer(source: AsyncIterable<Buffer>, changes: LayerChanges): AsyncGenerator<Buffer> {
  const reader = new ByteReader(source);
  const present = new Set<string>();
  let ends = 0;
  for (;;) {
    const entry = await readEntry(reader);
    if (entry === undefined) break;
    if (entry === 'zeros') {
      ends += 1;
      if (ends === 2) break;
      continue;
    }
    ends = 0;
    const path = cleanPath(entry.name);
    const dropped = isNoFile(entry, path, present, changes);
    const padded = Math.ceil(entry.size / blockSize) * blockSize;
    if (!dropped) yield* entry.blocks;
    for await (const chunk of reader.chunks(padded)) if (!dropped) yield chunk;
  }
  yield Buffer.alloc(2 * blockSize);
  // The padding after the last entry is not part of the copy, but must be read because the digest covers it.
  for await (const _ of reader.rest());
}

interface Entry extends TarHeader {
  /** The header of the entry and the extension headers before it. */
  readonly blocks: readonly Buffer[];
}

function isNoFile(entry: Entry, path: string, present: Set<string>, changes: LayerChanges): boolean {
  if (noteMark(path, changes)) return true;
  if (entry.type === '1') {
    const target = cleanPath(entry.linkName);
    if (!present.has(target)) {
      changes.links.push({ path, target });
      return true;
    }
  }
  if (entry.type === '5') changes.folders.add(path);
  else if (path === '') throw new Error('an entry would replace the root');
  else changes.folders.delete(path);
  present.add(path);
  return false;
}

/** Reads the next entry, with the names of its extension headers; `zeros` for a block of zeros. */
async function readEntry(reader: ByteReader): Promise<Entry | 'zeros' | undefined> {
  const blocks: Buffer[] = [];
  let pax = new Map<string, string>();
  let longName: string | undefined;
  let longLink: string | undefined;
  for (;;) {
    const block = await reader.exactly(blockSize);
    if (block === undefined) {
      if (blocks.length > 0) throw new Error('unexpected end of the archive');
      return undefined;
    }
    const header = parseTarHeader(block);
    if (header === undefined) return 'zeros';
    const { type } = header;
    if ('xLKg'.includes(type)) {
      const body = await readMetadata(reader, header.size);
      // Global headers are dropped, because they could override the headers of entries.
      if (type === 'g') continue;
      blocks.push(block, ...body.blocks);
      if (type === 'x') pax = parsePaxRecords(body.bytes);
      else if (type === 'L') longName = untilZero(body.bytes);
      else longLink = untilZero(body.bytes);
      continue;
    }
    blocks.push(block);
    for (let more = header.extended; more; ) {
      const extension = await reader.exactly(blockSize);
      if (extension === undefined) throw new Error('unexpected end of the archive');
      blocks.push(extension);
      more = extension[504] !== 0;
    }
    const size = pax.get('size');
    return {
      ...header,
      name: pax.get('GNU.sparse.name') ?? pax.get('path') ?? longName ?? header.name,
      linkName: pax.get('linkpath') ?? longLink ?? header.linkName,
      size: size === undefined || '123456'.includes(type) ? header.size : checkedSize(size),
      blocks,
    };
  }
}

async function readMetadata(reader: ByteReader, size: number): Promise<{ bytes: Buffer; blocks: readonly Buffer[] }> {
  if (size > maxMetadataBytes) throw new Error(`a header of the archive is too long: ${size} bytes`);
  if (size === 0) return { bytes: Buffer.alloc(0), blocks: [] };
  const padded = await reader.exactly(Math.ceil(size / blockSize) * blockSize);
  if (padded === undefined) throw new Error('unexpected end of the archive');
  return { bytes: padded.subarray(0, size), blocks: [padded] };
}

function checkedSize(text: string): number {
  const size = Number(text);
  if (!Number.isSafeInteger(size) || size < 0) throw new Error('a pax header has an invalid size');
  return size;
}

function untilZero(bytes: Buffer): string {
  const end = bytes.indexOf(0);
  return bytes.toString('latin1', 0, end < 0 ? bytes.length : end);
}
