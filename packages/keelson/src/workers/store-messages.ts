import type { MessagePort } from 'node:worker_threads';
import type { StorageErrorCode } from '@keelson/core';
import type { Change, Entry, Key, Revision, StoreCapabilities } from '@keelson/core/storage-adapter';

/** Methods of a store that are one request and one response. */
export type CallMethod = 'identity' | 'get' | 'count' | 'compact' | 'compactedRevision' | 'ready';

/**
 * Messages of a worker to the main thread. Each has an identifier, which its response repeats; a message without a
 * response has the identifier 0. A stream has the identifier of the request that opened it. The last argument of a
 * method is its options without the signal. A write is an array, because an object costs twice as much.
 */
export type StoreRequest =
  | SentWrite
  | { readonly id: number; readonly call: CallMethod; readonly args: readonly unknown[] }
  | { readonly id: number; readonly open: 'list' | 'watch'; readonly args: readonly unknown[] }
  /** Requests the next chunk of a list. */
  | { readonly id: number; readonly next: number }
  /** Allows the main thread to send this many batches of a watch in addition. */
  | { readonly id: number; readonly grant: number; readonly batches: number }
  | { readonly id: number; readonly advance: number; readonly revision: Revision }
  /** Aborts the call or closes the stream with this identifier; `reads`: all of them. Writes are never aborted. */
  | { readonly id: number; readonly abort: number | 'reads' };

/** A put, or without a value a delete. */
export type SentWrite = readonly [id: number, key: Key, expect: Revision, value?: SentBytes, ttlMs?: number];

/** An error in the form that passes between threads. */
export interface SentError {
  readonly code: StorageErrorCode | undefined;
  readonly message: string;
  readonly key: string | undefined;
  readonly revision: number | undefined;
}

/** Messages of the main thread to a worker: the response to a request, or a batch of a watch. */
export type StoreResponse =
  /** A successful write. */
  | readonly [id: number, revision: Revision, createRevision: Revision]
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: SentError }
  | { readonly watch: number; readonly frontier: Revision; readonly changes: readonly SentChange[] }
  /** The end of a watch; without an error it was closed. */
  | { readonly watch: number; readonly error?: SentError };

/** Bytes in a message: the number of a block of shared memory, and the part of it. */
export type SentBytes = readonly [block: number, offset: number, length: number];

/** An entry without its key, with the properties that few entries have. */
export type SentEntry = readonly [
  value: SentBytes,
  createRevision: Revision,
  modRevision: Revision,
  more?: Pick<Entry, 'expiresAt' | 'damaged' | 'damage'>,
];

export type SentObject = readonly [key: Key, entry: SentEntry];

export type SentChange = readonly [
  type: Change['type'],
  revision: Revision,
  key: Key,
  entry: SentEntry | 0,
  prev?: SentEntry,
];

/** Messages as JSON text, alone or in a list with the blocks of shared memory that the receiver does not have yet. */
type Post = string | readonly [string, ...SharedArrayBuffer[]];

/** Shortest interval, in milliseconds, of messages without a waiting reader. */
const lazyMs = 1;

/**
 * Length of the blocks of shared memory to which other bytes are copied. It is the length of the blocks in which Node
 * allocates small buffers. A block is freed when all of its bytes are unused.
 */
const blockLength = 8192;

/**
 * Whether sender and receiver remove a block from their tables. Only the newest blocks are kept, because values that
 * are written one after the other are in the same block.
 */
function isForgotten(number: number, block: ArrayBufferLike, lastNumber: number): boolean {
  return number <= lastNumber - 32 || block.byteLength > blockLength;
}

/**
 * Sends the messages of one turn of the event loop as one message: each message wakes up the receiver, which costs more
 * than the message itself. They are JSON, which costs a tenth of a structured clone.
 */
export class Outbox<M> {
  readonly #port: MessagePort;
  readonly #flush = () => this.#send();
  readonly #numbers = new Map<ArrayBufferLike, number>();
  #lastNumber = 0;
  #block = Buffer.from(new SharedArrayBuffer(0));
  #used = 0;
  #messages: M[] = [];
  #lazyMessages: M[] = [];
  #newBlocks: SharedArrayBuffer[] = [];
  #sentAt = 0;
  #immediate: NodeJS.Immediate | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(port: MessagePort) {
    this.#port = port;
  }

  send(message: M): void {
    this.#messages.push(message);
    this.hurry();
  }

  /**
   * Sends a message later when others were sent just before, so that many of them are one message. It precedes messages
   * of the same turn that were sent without delay.
   */
  sendLazily(message: M): void {
    this.#lazyMessages.push(message);
    // Not injected: only determines how many messages are sent together.
    if (performance.now() - this.#sentAt >= lazyMs) this.hurry();
    else this.#timer ??= setTimeout(this.#flush, lazyMs);
  }

  /** Sends all waiting messages at the end of this turn of the event loop. */
  hurry(): void {
    this.#immediate ??= setImmediate(this.#flush);
  }

  /** The form of bytes in a message of this turn of the event loop. Bytes outside of shared memory are copied. */
  bytes(value: Uint8Array): SentBytes {
    const { buffer, byteOffset, byteLength } = value;
    if (buffer instanceof SharedArrayBuffer) return [this.#numberOf(buffer), byteOffset, byteLength];
    const needed = this.#used + byteLength;
    if (needed > this.#block.length) {
      const block = new SharedArrayBuffer(Math.max(blockLength, byteLength));
      this.#block = Buffer.from(block);
      this.#used = 0;
    }
    const offset = this.#used;
    this.#block.set(value, offset);
    this.#used += byteLength;
    return [this.#numberOf(this.#block.buffer), offset, byteLength];
  }

  #numberOf(block: SharedArrayBuffer): number {
    const known = this.#numbers.get(block);
    if (known !== undefined) return known;
    this.#newBlocks.push(block);
    this.#numbers.set(block, ++this.#lastNumber);
    return this.#lastNumber;
  }

  #send(): void {
    clearImmediate(this.#immediate);
    clearTimeout(this.#timer);
    this.#immediate = undefined;
    this.#timer = undefined;
    const messages = this.#lazyMessages.length === 0 ? this.#messages : this.#lazyMessages.concat(this.#messages);
    if (messages.length === 0) return;
    const text = JSON.stringify(messages);
    this.#messages = [];
    this.#lazyMessages = [];
    this.#sentAt = performance.now();
    const blocks = this.#newBlocks;
    this.#port.postMessage((blocks.length === 0 ? text : [text, ...blocks]) satisfies Post);
    if (blocks.length === 0) return;
    this.#newBlocks = [];
    for (const [block, number] of this.#numbers)
      if (isForgotten(number, block, this.#lastNumber)) this.#numbers.delete(block);
  }
}

/** Reads what the `Outbox` of another thread sends. */
export class Inbox<M> {
  readonly #blocks = new Map<number, SharedArrayBuffer>();
  #lastNumber = 0;

  receive(post: unknown): readonly M[] {
    const [text, ...blocks] = typeof post === 'string' ? [post] : (post as Exclude<Post, string>);
    for (const [number, block] of this.#blocks)
      if (isForgotten(number, block, this.#lastNumber)) this.#blocks.delete(number);
    for (const block of blocks) this.#blocks.set(++this.#lastNumber, block);
    return JSON.parse(text) as readonly M[];
  }

  /** The bytes of a message, before the next one is received. */
  bytes([number, offset, length]: SentBytes): Buffer {
    const block = this.#blocks.get(number);
    if (block === undefined) throw new RangeError(`block ${number} is unknown`);
    return Buffer.from(block, offset, length);
  }
}

/** An entry in the form of messages. */
export function sentEntry(outbox: Outbox<StoreResponse>, entry: Entry): SentEntry {
  const { value, createRevision, modRevision, expiresAt, damaged, damage } = entry;
  const bytes = outbox.bytes(value);
  if (expiresAt === undefined && damaged === undefined) return [bytes, createRevision, modRevision];
  return [bytes, createRevision, modRevision, { expiresAt, damaged, damage } as Pick<Entry, 'expiresAt'>];
}

/** Converts the form that {@link sentEntry} returned back to an entry. */
export function receivedEntry(
  inbox: Inbox<StoreResponse>,
  key: Key,
  [bytes, createRevision, modRevision, more]: SentEntry,
): Entry {
  const value = inbox.bytes(bytes);
  return more === undefined
    ? { key, value, createRevision, modRevision }
    : { key, value, createRevision, modRevision, ...more };
}

/** What a worker receives to use a store of the main thread. */
export interface StoreAccess {
  readonly port: MessagePort;
  /** One 64-bit integer: the newest revision that any thread can have observed. */
  readonly revision: SharedArrayBuffer;
  readonly capabilities: StoreCapabilities;
}
