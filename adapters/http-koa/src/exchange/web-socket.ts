import type { IncomingMessage } from 'node:http';
import { Writable } from 'node:stream';
import { statusErrors } from '@keelson/core';
import type { WebSocket } from 'ws';
import type { Exchange } from './exchange.ts';

/** Maximum bytes of a message of the client. Such messages are ignored. */
const receivedBytes = 64 * 1024;
/** Interval of TCP keep-alive probes, which detect a client that has disappeared. */
const keepAliveMs = 30_000;
const normalClosure = 1000;

/** Beginning of the subprotocol by which a browser sends its bearer token for this server. */
const bearerProtocol = 'base64url.bearer.authorization.k8s.io.';

/** A list of WebSocket subprotocols without the one that contains the bearer token. */
export function subprotocolsOf(header: string): readonly string[] {
  const all = header.split(',').map((protocol) => protocol.trim());
  return all.filter((protocol) => protocol !== '' && !protocol.startsWith(bearerProtocol));
}

/** True for a request to continue its connection as a WebSocket; RFC 6455, 4.1. */
export function asksForWebSocket({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket';
}

/** How the bytes of a response become messages. */
export interface MessageForm {
  /** The subprotocol that the server chooses; undefined for none. */
  readonly subprotocol: string | undefined;
  readonly binary: boolean;
  /** The messages for some bytes of the response, at least one. */
  messages(bytes: Buffer): readonly Buffer[];
}

/** Sends the bytes written to it as messages of a WebSocket, and closes it at their end. */
class MessageStream extends Writable {
  readonly #socket: WebSocket;
  readonly #form: MessageForm;

  constructor(socket: WebSocket, form: MessageForm) {
    super();
    this.#socket = socket;
    this.#form = form;
    // The WebSocket library closes the connection after an error, and a failed write is followed by `close` too.
    socket.on('error', () => {});
    this.on('error', () => {});
    socket.once('close', () => this.destroy());
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    const messages = this.#form.messages(bytes);
    const options = { binary: this.#form.binary };
    for (const message of messages.slice(0, -1)) this.#socket.send(message, options);
    this.#socket.send(messages.at(-1) ?? bytes, options, done);
  }

  override _final(done: () => void): void {
    this.#socket.once('close', () => done());
    this.#socket.close(normalClosure);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.terminate();
    done(error);
  }
}

/**
 * Responds with a WebSocket whose messages are the bytes written to the returned stream; undefined when the client has
 * disconnected. The client may send nothing but control frames; other messages are ignored.
 *
 * @throws StatusError 400 when the handshake is invalid
 */
export async function openWebSocket(exchange: Exchange, form: MessageForm): Promise<Writable | undefined> {
  const { request, response, requestId, webSocket: asked } = exchange;
  // Loaded by the first request that needs it.
  const { WebSocketServer } = await import('ws');
  if (asked === undefined || asked.socket.destroyed || exchange.answered) return undefined;
  const { socket, head } = asked;
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: receivedBytes,
    handleProtocols: () => form.subprotocol ?? false,
  });
  server.on('headers', (headers) => headers.push(`Audit-Id: ${requestId}`));
  return new Promise((resolve, reject) => {
    socket.once('close', () => resolve(undefined));
    server.once('wsClientError', ({ message }) => reject(statusErrors.badRequest(`unable to upgrade: ${message}`)));
    server.handleUpgrade(request, socket, head, (opened) => {
      exchange.answered = true;
      exchange.longRunning = true;
      response.statusCode = 101;
      exchange.audit?.started(101);
      response.detachSocket(socket);
      socket.setKeepAlive(true, keepAliveMs);
      resolve(new MessageStream(opened, form));
    });
  });
}
