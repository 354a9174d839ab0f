import type { MessagePort } from 'node:worker_threads';
import type { StorageErrorCode } from '@keelson/core';
import type { Revision, StoreCapabilities, WatchBatch } from '@keelson/core/storage-adapter';

/** Methods of a store that are one request and one response. */
export type CallMethod = 'identity' | 'write' | 'get' | 'count' | 'compact' | 'compactedRevision' | 'ready';

/**
 * Messages of a worker to the main thread. Each has an identifier, which its response has too; without a response it is
 * 0. A stream has the identifier of the request that opened it. The last argument of a method is its options without
 * the signal.
 */
export type StoreRequest =
  | { readonly id: number; readonly call: CallMethod; readonly args: readonly unknown[] }
  | { readonly id: number; readonly open: 'list' | 'watch'; readonly args: readonly unknown[] }
  /** Requests the next chunk of a list. */
  | { readonly id: number; readonly next: number }
  /** Allows the main thread to send this many batches of a watch in addition. */
  | { readonly id: number; readonly grant: number; readonly batches: number }
  | { readonly id: number; readonly advance: number; readonly revision: Revision }
  /** Aborts a call, closes a stream, or does both with all of them except writes. */
  | { readonly id: number; readonly abort: number | 'reads' };

/** An error in the form that passes between threads. */
export interface SentError {
  readonly code: StorageErrorCode | undefined;
  readonly message: string;
  readonly key: string | undefined;
  readonly revision: number | undefined;
}

/** Messages of the main thread to a worker: the response to a request, or a batch of a watch. */
export type StoreResponse =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: SentError }
  | { readonly watch: number; readonly batch: WatchBatch }
  /** The end of a watch; without an error it was closed. */
  | { readonly watch: number; readonly error?: SentError };

/** Shortest interval, in milliseconds, of messages without a waiting reader. */
const lazyMs = 1;

/**
 * Sends the messages of one turn of the event loop as one message: each message wakes up the receiver, which costs more
 * than the message itself.
 */
export class Outbox<M> {
  readonly #port: MessagePort;
  readonly #flush = () => this.#send();
  #messages: M[] = [];
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

  /** Sends a message later when others were sent just before, so that many of them are one message. */
  sendLazily(message: M): void {
    this.#messages.push(message);
    if (performance.now() - this.#sentAt >= lazyMs) this.hurry();
    else this.#timer ??= setTimeout(this.#flush, lazyMs);
  }

  /** Sends what waits at the end of this turn. */
  hurry(): void {
    this.#immediate ??= setImmediate(this.#flush);
  }

  #send(): void {
    clearImmediate(this.#immediate);
    clearTimeout(this.#timer);
    this.#immediate = undefined;
    this.#timer = undefined;
    const messages = this.#messages;
    if (messages.length === 0) return;
    this.#messages = [];
    this.#sentAt = performance.now();
    this.#port.postMessage(messages);
  }
}

/** What a worker receives to use a store of the main thread. */
export interface StoreAccess {
  readonly port: MessagePort;
  /** One 64-bit integer: the newest revision that anybody can have observed. */
  readonly revision: SharedArrayBuffer;
  readonly capabilities: StoreCapabilities;
}

/** A copy in memory that all threads share; the value itself when it is there already. */
export function sharedBytes(value: Uint8Array): Uint8Array {
  if (value.buffer instanceof SharedArrayBuffer && value.byteLength === value.buffer.byteLength) return value;
  const copy = new Uint8Array(new SharedArrayBuffer(value.byteLength));
  copy.set(value);
  return copy;
}
