import type { ServerResponse } from 'node:http';
import type { Http2ServerResponse } from 'node:http2';
import type { Socket } from 'node:net';

/** Where the frames of a watch go once its headers are out. */
export interface FrameSink {
  /** True when frames must carry the chunk header of HTTP/1.1 themselves. */
  readonly chunked: boolean;
  /** False when the receiver is behind: write no more until `onDrain` calls. */
  write(frames: readonly Buffer[]): boolean;
  onDrain(callback: () => void): void;
}

/** Past `ServerResponse`, which would build a chunk header and three writes for each frame. */
class SocketSink implements FrameSink {
  readonly chunked = true;
  readonly #socket: Socket;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  write(frames: readonly Buffer[]): boolean {
    const first = frames[0];
    if (frames.length === 1 && first !== undefined) return this.#socket.write(first);
    let open = true;
    this.#socket.cork();
    for (const frame of frames) open = this.#socket.write(frame);
    this.#socket.uncork();
    return open;
  }

  onDrain(callback: () => void): void {
    this.#socket.once('drain', callback);
  }
}

/** Through the response object: HTTP/2, HTTP/1.0 and responses that still wait for their turn on the connection. */
class ResponseSink implements FrameSink {
  readonly chunked = false;
  readonly #response: ServerResponse;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  write(frames: readonly Buffer[]): boolean {
    let open = true;
    for (const frame of frames) open = this.#response.write(frame);
    return open;
  }

  onDrain(callback: () => void): void {
    this.#response.once('drain', callback);
  }
}

/**
 * Chooses the sink for a response whose headers have just been flushed. The socket itself is used only while it carries
 * this response alone: HTTP/1.1 with chunked coding, nothing of the response still queued.
 */
export function openFrameSink(response: ServerResponse | Http2ServerResponse): FrameSink {
  const http1 = response as ServerResponse;
  const { socket } = http1;
  if (
    socket !== null &&
    socket !== undefined &&
    http1.chunkedEncoding === true &&
    http1.req.httpVersionMajor === 1 &&
    http1.headersSent &&
    http1.writableLength === socket.writableLength
  ) {
    return new SocketSink(socket);
  }
  return new ResponseSink(http1);
}
