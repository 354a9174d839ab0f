import type { WatchEventType } from '../storage/resource-storage.ts';

/**
 * Framing of a JSON watch: see docs/reference/api-rules.md#frames-of-a-watch. With `chunked`, the chunk header and
 * trailer of HTTP/1.1 are part of the frame, so that all sockets share one buffer.
 */
export type Framing = 'plain' | 'chunked';

const prefixes: Readonly<Record<WatchEventType | 'ERROR', Buffer>> = {
  ADDED: Buffer.from('{"type":"ADDED","object":'),
  MODIFIED: Buffer.from('{"type":"MODIFIED","object":'),
  DELETED: Buffer.from('{"type":"DELETED","object":'),
  BOOKMARK: Buffer.from('{"type":"BOOKMARK","object":'),
  ERROR: Buffer.from('{"type":"ERROR","object":'),
};
const closeBrace = 0x7d;
const newline = 0x0a;
const carriageReturn = 0x0d;

/** Something that can put its JSON into a buffer; a stored object can, without a view being made of it. */
export interface JsonSource {
  readonly byteLength: number;
  /** Copies the JSON to `target` and answers where it ends. */
  copyTo(target: Buffer, at: number): number;
}

/** The frame of one event, in one buffer of exactly its size. */
export function jsonFrame(type: WatchEventType | 'ERROR', object: Buffer | JsonSource, framing: Framing): Buffer {
  const prefix = prefixes[type];
  const payload = prefix.length + object.byteLength + 2;
  const header = framing === 'chunked' ? `${payload.toString(16)}\r\n` : '';
  const frame = Buffer.allocUnsafe(framing === 'chunked' ? header.length + payload + 2 : payload);
  let at = header === '' ? 0 : frame.write(header, 0, 'latin1');
  at += prefix.copy(frame, at);
  at = Buffer.isBuffer(object) ? at + object.copy(frame, at) : object.copyTo(frame, at);
  frame[at++] = closeBrace;
  frame[at++] = newline;
  if (framing === 'chunked') {
    frame[at++] = carriageReturn;
    frame[at] = newline;
  }
  return frame;
}
