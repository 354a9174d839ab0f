import { type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { TLSSocket } from 'node:tls';
import type { UpgradeRequest } from '../exchange/exchange.ts';

/** Headers that are removed when the connection is not upgraded; RFC 9110, 7.8. */
const wishWords: ReadonlySet<string> = new Set(['upgrade', 'http2-settings']);

/**
 * Creates the response on a connection that Node has detached from its HTTP server. Returns undefined and destroys the
 * connection when the response to an earlier request is pending: their order could not be kept.
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
 * Handles the socket events of a response on a connection that Node has detached from its HTTP server. Ends the
 * connection after the response, because the client may already have sent bytes of the other protocol.
 */
export function driveAnswer(response: ServerResponse, { socket }: UpgradeRequest): void {
  // Node emits `close` after an error.
  socket.on('error', () => {});
  socket.on('drain', () => response.emit('drain'));
  response.once('finish', () => {
    response.detachSocket(socket);
    socket.end(() => socket.destroy());
  });
}

/** The head of a request as received, without the upgrade headers. */
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
 * Serves a request as if it had not requested an upgrade, which RFC 9110 permits: Node parses it again with its body,
 * and the connection stays open. Node does the same when the server has no listener for upgrades.
 *
 * Node 26 and later parse the body before this call, or give a stream in place of the socket while it is received. Such
 * a request cannot be parsed again; it is served as it is, and its connection ends with the response.
 */
export function serveWithoutUpgrade(server: Server, request: IncomingMessage, asked: UpgradeRequest): void {
  const { socket, head } = asked;
  if (request.readableLength > 0 || socket !== request.socket) {
    const response = answerOn(request, asked);
    if (response === undefined) return;
    driveAnswer(response, asked);
    server.emit('request', request, response);
    return;
  }
  socket.unshift(Buffer.concat([Buffer.from(plainHead(request), 'latin1'), head]));
  server.emit((socket as TLSSocket).encrypted ? 'secureConnection' : 'connection', socket);
}
