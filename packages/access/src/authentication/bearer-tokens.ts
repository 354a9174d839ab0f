import type { IncomingMessage } from 'node:http';
import { statusErrors } from '@keelson/core';

/** Prefix of the WebSocket subprotocol by which browsers send a token: they cannot set the Authorization header. */
const webSocketBearer = 'base64url.bearer.authorization.k8s.io.';

/**
 * The bearer token of a request: from the Authorization header, or from a subprotocol of a WebSocket request. Undefined
 * without one.
 *
 * @throws StatusError 401 for `Bearer` without a token and for an invalid subprotocol
 */
export function bearerToken({ headers }: IncomingMessage): string | undefined {
  const { authorization } = headers;
  if (authorization !== undefined) {
    const found = /^\s*bearer(?:\s+(\S+)\s*$|\s|$)/i.exec(authorization);
    if (found !== null) return found[1] ?? unauthorized();
  }
  const protocols = headers['sec-websocket-protocol'];
  if (protocols === undefined || !protocols.includes(webSocketBearer) || !isWebSocket(headers)) return undefined;
  return webSocketToken(protocols.split(',').map((protocol) => protocol.trim()));
}

function unauthorized(): never {
  throw statusErrors.unauthorized();
}

function isWebSocket({ upgrade = '', connection = '' }: IncomingMessage['headers']): boolean {
  return upgrade.toLowerCase() === 'websocket' && /(?:^|,)\s*upgrade\s*(?:,|$)/i.test(connection);
}

/** Besides the token there must be one other subprotocol, because a server must not choose the token. */
function webSocketToken(protocols: readonly string[]): string {
  const tokens = protocols.filter((protocol) => protocol.startsWith(webSocketBearer));
  const [encoded = ''] = tokens.map((protocol) => protocol.slice(webSocketBearer.length));
  if (tokens.length !== 1 || protocols.length < 2 || !/^[\w-]+$/.test(encoded)) return unauthorized();
  const token = Buffer.from(encoded, 'base64url');
  const text = token.toString('utf8');
  // Bytes that are not UTF-8 would be replaced, and the token would be another one.
  if (!Buffer.from(text, 'utf8').equals(token) || !/^[\x21-\x7e]+$/.test(text)) return unauthorized();
  return text;
}
