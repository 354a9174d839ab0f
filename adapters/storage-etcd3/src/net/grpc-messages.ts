import type { IncomingHttpHeaders } from 'node:http2';

/** Codes of gRPC that the adapter distinguishes. */
export const status = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  deadlineExceeded: 4,
  permissionDenied: 7,
  resourceExhausted: 8,
  aborted: 10,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  dataLoss: 15,
  unauthenticated: 16,
} as const;

/** A call that failed: the code and the text of the server, or of this client when there is no answer. */
export class CallError extends Error {
  readonly code: number;
  readonly details: string;

  constructor(code: number, details: string) {
    super(`${code} ${details}`);
    this.name = 'CallError';
    this.code = code;
    this.details = details;
  }
}

/** Length of the prefix of a message: a flag for compression and the length. */
const prefixBytes = 5;
/** Largest message that is accepted; pages and fragments are much smaller. */
const maxMessageBytes = 64 * 1024 * 1024;

/** A request as a message with its prefix. */
export function framed(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(prefixBytes + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, prefixBytes);
  return frame;
}

/** Splits the body of an answer into messages. */
export class MessageReader {
  #parts: Buffer[] = [];
  #bytes = 0;
  /** Number of bytes to wait for: the prefix until it has arrived, afterwards the prefix and the message. */
  #needed = prefixBytes;

  /** The messages that the chunk completes, each in memory of its own. @throws CallError */
  read(chunk: Buffer): Buffer[] {
    this.#parts.push(chunk);
    this.#bytes += chunk.length;
    const messages: Buffer[] = [];
    while (this.#bytes >= this.#needed) {
      // Received chunks are joined only when they complete a prefix or a message, so that each byte is copied at most
      // twice.
      const all = this.#parts.length === 1 ? (this.#parts[0] as Buffer) : Buffer.concat(this.#parts, this.#bytes);
      this.#needed = prefixBytes + this.#lengthOf(all);
      this.#parts = [all];
      if (all.length < this.#needed) break;
      messages.push(Buffer.from(all.subarray(prefixBytes, this.#needed)));
      this.#bytes -= this.#needed;
      this.#parts = this.#bytes === 0 ? [] : [all.subarray(this.#needed)];
      this.#needed = prefixBytes;
    }
    return messages;
  }

  #lengthOf(prefix: Buffer): number {
    if (prefix[0] !== 0) throw new CallError(status.internal, 'Received a compressed message');
    const length = prefix.readUInt32BE(1);
    if (length > maxMessageBytes)
      throw new CallError(
        status.resourceExhausted,
        `Received message larger than max (${length} vs. ${maxMessageBytes})`,
      );
    return length;
  }
}

const httpCodes: Readonly<Record<number, number>> = {
  400: status.internal,
  401: status.unauthenticated,
  403: status.permissionDenied,
  404: status.unimplemented,
  429: status.unavailable,
  502: status.unavailable,
  503: status.unavailable,
  504: status.unavailable,
};

/** The outcome that the headers or trailers of an answer contain; undefined when they contain none. */
export function outcomeOf(headers: IncomingHttpHeaders): { readonly error: CallError | undefined } | undefined {
  const text = headers['grpc-status'];
  if (text !== undefined) {
    const code = Number(text);
    return { error: code === status.ok ? undefined : new CallError(code, messageOf(headers['grpc-message'])) };
  }
  const http = headers[':status'];
  if (http === undefined || Number(http) === 200) return undefined;
  return { error: new CallError(httpCodes[Number(http)] ?? status.unknown, `Received HTTP status code ${http}`) };
}

function messageOf(header: string | string[] | undefined): string {
  const text = String(header ?? '');
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
