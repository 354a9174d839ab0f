import { type LogLineHead, maxLogHeadBytes, parseLogHead } from '@keelson/container-runtime';
import type { LogRequest } from '../../base/contracts/pod-queries.ts';

const lineEnd = 0x0a;
const empty = Buffer.alloc(0);

/**
 * Turns the bytes of a log file into the text that a request asks for. It keeps no more than one incomplete head of an
 * entry.
 */
export class LogText {
  readonly #timestamps: boolean;
  readonly #sinceMs: number | undefined;
  /** A head that the bytes so far do not complete. */
  #rest: Buffer = empty;
  /** The entry whose line end has not been read yet. */
  #open: { readonly wanted: boolean; readonly partial: boolean } | undefined;
  /** The text so far ends a line; a timestamp belongs only there. */
  #lineBegins = true;

  constructor({ timestamps = false, sinceMs }: Partial<Pick<LogRequest, 'timestamps' | 'sinceMs'>>) {
    this.#timestamps = timestamps;
    this.#sinceMs = sinceMs;
  }

  /** The text in the next bytes of the file. The result shares no memory with the chunk. */
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

  /** To be called at the end of a file. Returns the line end that an entry lacks because its writer was stopped. */
  endFile(): Buffer {
    const cut = this.#open?.wanted === true && !this.#open.partial;
    this.#open = undefined;
    this.#rest = empty;
    if (cut) this.#lineBegins = true;
    return cut ? Buffer.of(lineEnd) : empty;
  }
}

/** True for an entry that was written before a time in epoch milliseconds. */
export function isBefore({ time }: LogLineHead, sinceMs: number | undefined): boolean {
  return sinceMs !== undefined && Date.parse(time) < sinceMs;
}
