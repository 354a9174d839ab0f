import type { FileHandle } from 'node:fs/promises';
import { type LogLineHead, maxLogHeadBytes, parseLogHead } from '@keelson/container-runtime';
import { type Clock, pause } from '@keelson/core/runtime';
import type { LogRequest } from '../../base/contracts/pod-queries.ts';
import { type LogFile, openAfter, openLog, openNewest, rotatedBefore } from './log-files.ts';

const lineEnd = 0x0a;
const empty = Buffer.alloc(0);

/** Converts the bytes of a log file to the requested text. Buffers at most one incomplete entry head. */
export class LogText {
  readonly #timestamps: boolean;
  readonly #sinceMs: number | undefined;
  /** An incomplete entry head. */
  #rest: Buffer = empty;
  /** The entry whose line end has not been read yet. */
  #open: { readonly wanted: boolean; readonly partial: boolean } | undefined;
  /** True at the start of a line; only there a timestamp is inserted. */
  #lineBegins = true;

  constructor({ timestamps = false, sinceMs }: Partial<Pick<LogRequest, 'timestamps' | 'sinceMs'>>) {
    this.#timestamps = timestamps;
    this.#sinceMs = sinceMs;
  }

  /** Returns the text in the next bytes of the file. The result shares no memory with the chunk. */
  decode(chunk: Buffer): Buffer {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const parts: Buffer[] = [];
    let at = 0;
    while (at < bytes.length) {
      const found = bytes.indexOf(lineEnd, at);
      const end = found < 0 ? undefined : found;
      if (this.#open === undefined) {
        const head = parseLogHead(bytes, at, end);
        if (head === undefined && end === undefined && bytes.length - at < maxLogHeadBytes) break;
        const wanted = head !== undefined && !isBefore(head, this.#sinceMs);
        this.#open = { wanted, partial: head?.partial === true };
        if (wanted && this.#timestamps && this.#lineBegins) parts.push(Buffer.from(`${head.time} `, 'latin1'));
        at += head?.length ?? 0;
      }
      const { wanted, partial } = this.#open;
      if (wanted) {
        parts.push(bytes.subarray(at, end === undefined || partial ? end : end + 1));
        this.#lineBegins = end !== undefined && !partial;
      }
      if (end !== undefined) this.#open = undefined;
      at = end === undefined ? bytes.length : end + 1;
    }
    this.#rest = Buffer.from(bytes.subarray(at));
    return Buffer.concat(parts);
  }

  /**
   * Must be called at the end of a file. Returns the line end that the last entry lacks because its writer was stopped.
   */
  endFile(): Buffer {
    const cut = this.#open?.wanted === true && !this.#open.partial;
    this.#open = undefined;
    this.#rest = empty;
    if (cut) this.#lineBegins = true;
    return cut ? Buffer.of(lineEnd) : empty;
  }
}

/** True for an entry that was written before `sinceMs`. */
export function isBefore({ time }: LogLineHead, sinceMs: number | undefined): boolean {
  return sinceMs !== undefined && Date.parse(time) < sinceMs;
}

const blockBytes = 64 * 1024;

/** Counts lines from the end of a log, file by file. A line of several entries counts once. */
export class LogTail {
  readonly #sinceMs: number | undefined;
  #missing: number;
  #begun = false;

  /** @param sinceMs entries before this time (epoch milliseconds) are not counted */
  constructor(lines: number, sinceMs: number | undefined) {
    this.#missing = lines;
    this.#sinceMs = sinceMs;
  }

  /**
   * The offset of the first of the remaining lines; undefined when the file has fewer lines. Reads the file in blocks
   * from the end.
   */
  async find(file: FileHandle): Promise<number | undefined> {
    const { size } = await file.stat();
    // The head of an entry at the end of a block continues in the next block.
    const block = Buffer.allocUnsafe(Math.min(size, blockBytes + maxLogHeadBytes));
    /** Offset of the entry after the examined one. */
    let next = size;
    for (let end = size; end > 0; end -= blockBytes) {
      const start = Math.max(0, end - blockBytes);
      const { bytesRead } = await file.read(block, 0, Math.min(block.length, size - start), start);
      const bytes = block.subarray(0, bytesRead);
      for (let before = end - start; before > 0; ) {
        const found = bytes.lastIndexOf(lineEnd, before - 1);
        const at = found + 1;
        before = found;
        // An entry at the end of the block begins there only if the preceding line end is in this block.
        if ((found < 0 && start > 0) || start + at >= size) continue;
        if (this.#complete(bytes, at, next - start - 1)) return next;
        next = start + at;
      }
    }
    return undefined;
  }

  /** True when the entry ends the line before the first requested one. */
  #complete(bytes: Buffer, at: number, end: number): boolean {
    const head = parseLogHead(bytes, at, end <= bytes.length ? end : undefined);
    if (head === undefined || isBefore(head, this.#sinceMs)) return false;
    // Text without a line end at the end of the log counts as a line.
    const endsLine = !head.partial || !this.#begun;
    this.#begun = true;
    if (!endsLine) return false;
    if (this.#missing === 0) return true;
    this.#missing -= 1;
    return false;
  }
}

const chunkBytes = 64 * 1024;
const followMs = 200;

/** Absent fields select everything, without timestamps. */
export type LogSelection = Partial<Pick<LogRequest, 'timestamps' | 'tailLines' | 'sinceMs' | 'limitBytes'>>;

/** Parameters for following a log while its container writes. */
export interface LogFollow {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** True when nothing will be appended any more. */
  readonly ended: () => boolean;
}

/**
 * The requested text of a container log, from the rotated files and the current file. Without `follow`, reading ends at
 * the end of the file that was current at the start. Following continues until the signal aborts, or until the log has
 * ended and has been read completely.
 */
export async function* readLog(path: string, request: LogSelection, follow?: LogFollow): AsyncGenerator<Buffer> {
  const newest = await openNewest(path);
  if (newest === undefined) return;
  let left = request.limitBytes ?? Number.POSITIVE_INFINITY;
  for await (const text of textFrom(path, newest, request, follow)) {
    const part = text.subarray(0, left);
    left -= part.length;
    if (part.length > 0) yield part;
    if (left <= 0) return;
  }
}

async function* textFrom(
  path: string,
  newest: LogFile,
  request: LogSelection,
  follow: LogFollow | undefined,
): AsyncGenerator<Buffer> {
  const text = new LogText(request);
  const chunk = Buffer.allocUnsafe(chunkBytes);
  let { file, position } = await firstOf(path, newest, request);
  let next: LogFile | undefined;
  try {
    while (follow?.signal.aborted !== true) {
      // Evaluated before reading, so that everything written before the end is still read.
      const last = follow === undefined || follow.ended();
      const { bytesRead } = await file.handle.read(chunk, 0, chunkBytes, position);
      position += bytesRead;
      if (bytesRead > 0) {
        yield text.decode(chunk.subarray(0, bytesRead));
        continue;
      }
      if (next !== undefined) {
        yield text.endFile();
        await file.handle.close();
        [file, next, position] = [next, undefined, 0];
        continue;
      }
      if (follow === undefined && file.inode === newest.inode) break;
      next = await openAfter(path, file.inode);
      if (next === undefined && last) break;
      // The runtime may complete a write to the old file after it has opened the new one.
      if (follow !== undefined && (next === undefined || !file.rotated))
        await pause(follow.clock, followMs, follow.signal);
    }
    yield text.endFile();
  } finally {
    await file.handle.close();
    await next?.handle.close();
  }
}

/** Opens the file at which reading starts. Closes the newest file if it is another one. */
async function firstOf(
  path: string,
  newest: LogFile,
  { tailLines, sinceMs = Number.NEGATIVE_INFINITY }: LogSelection,
): Promise<{ file: LogFile; position: number }> {
  const tail = tailLines === undefined ? undefined : new LogTail(tailLines, sinceMs);
  let file = newest;
  try {
    let position = await tail?.find(file.handle);
    if (position !== undefined) return { file, position };
    for (const name of await rotatedBefore(path, newest.inode)) {
      const older = await openLog(name, true);
      if (older === undefined) break;
      if ((await older.handle.stat()).mtimeMs < sinceMs) {
        await older.handle.close();
        break;
      }
      await file.handle.close();
      file = older;
      position = await tail?.find(file.handle);
      if (position !== undefined) return { file, position };
    }
    return { file, position: 0 };
  } catch (error) {
    await file.handle.close();
    throw error;
  }
}
