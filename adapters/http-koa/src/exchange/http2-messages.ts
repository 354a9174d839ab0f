import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  Http2ServerRequest,
  Http2ServerResponse,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type SecureServerOptions,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Writable } from 'node:stream';
import type { FlatHeaders } from './exchange.ts';

type Listener = Parameters<ServerHttp2Stream['on']>[1];

const ignore = (): void => {};

/** The events of a stream, which both messages of a request have. */
class StreamEvents {
  readonly stream: ServerHttp2Stream;

  constructor(stream: ServerHttp2Stream) {
    this.stream = stream;
  }

  on(event: string, listener: Listener): this {
    this.stream.on(event, listener);
    return this;
  }

  once(event: string, listener: Listener): this {
    this.stream.once(event, listener);
    return this;
  }

  off(event: string, listener: Listener): this {
    this.stream.off(event, listener);
    return this;
  }
}

/**
 * A request of HTTP/2 with the members of `IncomingMessage` that the resource API uses. It forwards to its stream what
 * Node's compatibility class copies into a stream of its own, with eight listeners for each request.
 */
export class Http2Request extends StreamEvents {
  readonly httpVersion = '2.0';
  readonly httpVersionMajor = 2;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly method: string | undefined;
  url: string | undefined;
  #hasBody = false;

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _options: unknown, rawHeaders: string[]) {
    super(stream);
    this.headers = headers;
    this.rawHeaders = rawHeaders;
    this.method = headers[':method'];
    this.url = headers[':path'];
    // An error of the stream is followed by `close`, which is handled.
    stream.on('error', ignore);
  }

  /** The socket of the connection, one object for all its requests; the stream itself when the connection is closed. */
  get socket(): unknown {
    return this.stream.session?.socket ?? this.stream;
  }

  get destroyed(): boolean {
    return this.stream.destroyed;
  }

  get complete(): boolean {
    return this.#hasBody || this.stream.endAfterHeaders || this.stream.readableEnded || this.stream.destroyed;
  }

  pause(): void {
    this.stream.pause();
  }

  /** True when the stream keeps the body until it is complete, so that {@link arrived} returns it then. */
  holdsBody(limitBytes: number): boolean {
    const { 'content-length': announced } = this.headers;
    const length = Number(announced);
    // A length with leading zeros is valid, but `arrived` does not recognize it.
    return (
      announced === String(length) && length > 0 && length <= Math.min(limitBytes, this.stream.readableHighWaterMark)
    );
  }

  /**
   * The body when it has its announced length already and is not longer than `limitBytes`. It is empty when its end was
   * announced by a frame without bytes: Node has reported that end then, and does not report it again.
   *
   * A `read` without a length would also end the stream. Node destroys an ended stream as soon as the last frame of the
   * response is formed, before its write is complete, and then creates an error with a stack trace for each response.
   */
  arrived(limitBytes: number): Buffer | undefined {
    const length = this.stream.readableLength;
    if (this.stream.readableEnded) return Buffer.alloc(0);
    if (length === 0 || length > limitBytes || this.headers['content-length'] !== String(length)) return undefined;
    const bytes = this.stream.read(length) as Buffer | null;
    if (bytes === null) return undefined;
    this.#hasBody = true;
    return bytes;
  }
}

/** Names of headers in lower case, by the names that responses use. */
const lowerNames = new Map<string, string>();
const cachedNames = 256;

function lowerName(name: string): string {
  let lower = lowerNames.get(name);
  if (lower === undefined) {
    lower = name.toLowerCase();
    if (lowerNames.size < cachedNames) lowerNames.set(name, lower);
  }
  return lower;
}

/** A response over HTTP/2 with the members of `ServerResponse` that the resource API uses, forwarded to the stream. */
export class Http2Response extends StreamEvents {
  statusCode = 200;

  get headersSent(): boolean {
    return this.stream.headersSent;
  }

  get destroyed(): boolean {
    return this.stream.destroyed || this.stream.closed;
  }

  get closed(): boolean {
    return this.stream.closed;
  }

  get writableEnded(): boolean {
    return this.stream.writableEnded;
  }

  get writableFinished(): boolean {
    // An aborted stream is also finished, although its response is incomplete.
    return this.stream.writableFinished && !this.stream.aborted;
  }

  get writableLength(): number {
    return this.stream.writableLength;
  }

  writeHead(code: number, headers: OutgoingHttpHeaders | FlatHeaders = []): this {
    const { stream } = this;
    this.statusCode = code;
    if (stream.destroyed || stream.closed || stream.headersSent) return this;
    const fields: OutgoingHttpHeaders = { ':status': code };
    if (Array.isArray(headers)) {
      for (let i = 0; i < headers.length; i += 2) fields[lowerName(String(headers[i]))] = headers[i + 1];
    } else for (const [name, value] of Object.entries(headers)) fields[lowerName(name)] = value;
    stream.respond(fields);
    return this;
  }

  /** Does nothing: the headers are sent by {@link writeHead}. */
  flushHeaders(): void {}

  writeContinue(): void {
    if (!this.stream.destroyed && !this.stream.closed) this.stream.additionalHeaders({ ':status': 100 });
  }

  write(chunk: Uint8Array | string, callback?: (error?: Error | null) => void): boolean {
    if (!this.stream.headersSent) this.writeHead(this.statusCode);
    return this.stream.write(chunk, callback);
  }

  end(chunk?: Uint8Array | string): this {
    if (!this.stream.headersSent) this.writeHead(this.statusCode);
    // Node itself has ended the stream of a HEAD request.
    if (chunk === undefined || this.stream.writableEnded) this.stream.end();
    else this.stream.end(chunk);
    return this;
  }

  cork(): void {
    this.stream.cork();
  }

  uncork(): void {
    this.stream.uncork();
  }

  destroy(error?: Error): this {
    this.stream.destroy(error);
    return this;
  }
}

/**
 * Options of an HTTP/2 server for the listener of the API: its requests and responses cost a fraction of those of
 * Node's compatibility layer, which are created only for requests outside of the resource API.
 */
export const http2ServerOptions: Pick<SecureServerOptions, 'Http2ServerRequest' | 'Http2ServerResponse'> = {
  Http2ServerRequest: Http2Request as unknown as typeof Http2ServerRequest,
  Http2ServerResponse: Http2Response as unknown as typeof Http2ServerResponse,
};

/** A request and its response with all members of Node's classes, for code that is not part of the resource API. */
export function withAllMembers(
  request: IncomingMessage | Http2Request,
  response: ServerResponse | Http2Response,
): { request: IncomingMessage; response: ServerResponse } {
  if (request instanceof Http2Request) {
    const { stream, headers, rawHeaders, url } = request;
    const full = new Http2ServerRequest(stream, headers, {}, rawHeaders);
    if (url !== undefined && url !== full.url) full.url = url;
    return {
      request: full as unknown as IncomingMessage,
      response: new Http2ServerResponse(stream) as unknown as ServerResponse,
    };
  }
  return { request, response: response as ServerResponse };
}

/** The stream that receives the body of a response. */
export function bodySink(response: ServerResponse | Http2Response): Writable {
  return response instanceof Http2Response ? response.stream : response;
}
