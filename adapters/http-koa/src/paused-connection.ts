import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';

const prepared = new WeakSet<Socket>();

const ignore = (): void => {};

/**
 * From here on the bytes of a connection reach Node's parser through the stream of the socket, which keeps them while
 * it is paused.
 */
function parseThroughStream(this: Socket): void {
  // Node disconnects the parser from the native handle when a listener for data is added, and never connects it again.
  this.on('data', ignore);
  this.off('data', ignore);
  // The stream has waited for bytes that its handle gave to the parser. An empty chunk ends this wait; without it
  // `resume` reads nothing.
  this.push('');
}

/**
 * Prevents the loss of a TLS connection whose next request arrives before its last answer is written completely.
 *
 * Node pauses the parser of such a connection. TLS, however, delivers the records that it has decrypted already
 * straight to the paused parser, which fails with "Parse Error: Paused", and Node destroys the connection. This happens
 * with answers of 16 KiB or more followed by requests of two records or more. Every answer that is written outside the
 * poll phase of the event loop (from `setImmediate` or a timer) can be affected, because TLS reports its completion
 * only after the next poll phase.
 */
export function prepareForPause({ httpVersionMajor, socket }: IncomingMessage): void {
  // Streams of HTTP/2 have no parser of their own, and plain sockets deliver nothing while they are paused.
  if (httpVersionMajor !== 1 || (socket as TLSSocket).encrypted !== true || prepared.has(socket)) return;
  prepared.add(socket);
  socket.once('pause', parseThroughStream);
}
