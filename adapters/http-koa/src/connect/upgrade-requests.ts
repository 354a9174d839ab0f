import { type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { TLSSocket } from 'node:tls';
import type { UpgradeRequest } from '../exchange/exchange.ts';

/** What means nothing once the wish to leave HTTP is not heeded; RFC 9110, 7.8. */
const wishWords: ReadonlySet<string> = new Set(['upgrade', 'http2-settings']);

/**
 * An answer on a connection that Node has let go of. Undefined, and no connection, when an earlier request still waits
 * for its answer: nobody could tell the two apart.
 */
export function answerOn(request: IncomingMessage, { socket }: UpgradeRequest): ServerResponse | undefined {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  try {
    response.assignSocket(socket);
  } catch {
    socket.destroy();
    return undefined;
  }
  return response;
}

/**
 * Does for the answer what Node would. It ends the connection: the client may have sent more in the belief that HTTP is
 * over.
 */
export function driveAnswer(response: ServerResponse, { socket }: UpgradeRequest): void {
  // An error is followed by `close`.
  socket.on('error', () => {});
  socket.on('drain', () => response.emit('drain'));
  response.once('finish', () => {
    response.detachSocket(socket);
    socket.destroySoon();
  });
}

/** The head of a request as it came, without the wish to leave HTTP. */
function plainHead({ method, url, httpVersion, rawHeaders }: IncomingMessage): string {
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = rawHeaders.slice(i, i + 2);
    const lower = name.toLowerCase();
    if (wishWords.has(lower)) continue;
    const words =
      lower === 'connection' ? value.split(',').filter((word) => !wishWords.has(word.trim().toLowerCase())) : [value];
    if (words.length > 0) lines.push(`${name}: ${words.join(',').trim()}`);
  }
  return `${lines.join('\r\n')}\r\n\r\n`;
}

/**
 * Serves a request as if it had never wished to leave HTTP, which a server may do with any such wish: Node reads it
 * once more, body and all, and the connection goes on. Node itself would do so if nobody listened for upgrades.
 */
export function serveWithoutUpgrade(server: Server, request: IncomingMessage, { socket, head }: UpgradeRequest): void {
  socket.unshift(Buffer.concat([Buffer.from(plainHead(request), 'latin1'), head]));
  server.emit((socket as TLSSocket).encrypted ? 'secureConnection' : 'connection', socket);
}
