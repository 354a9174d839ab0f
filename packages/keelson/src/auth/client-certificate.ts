import type { IncomingMessage } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import type { UserInfo } from '@keelson/core';

const identities = new WeakMap<object, UserInfo | 'none'>();

function words(value: string | string[] | undefined): string[] {
  return value === undefined ? [] : Array.isArray(value) ? value : [value];
}

/**
 * The user of a verified client certificate: common name = user, organizations = groups (api-conventions 15.2). Looked up once
 * per connection. Undefined when the connection carries no certificate that the server's authority signed.
 */
export function authenticateClientCertificate(request: IncomingMessage): UserInfo | undefined {
  const connection = connectionOf(request);
  let known = identities.get(connection);
  if (known === undefined) {
    known = readIdentity(request.socket as TLSSocket) ?? 'none';
    identities.set(connection, known);
  }
  return known === 'none' ? undefined : known;
}

/** What all requests of one connection have in common; in HTTP/2 every request has a socket object of its own. */
function connectionOf(request: IncomingMessage): object {
  return (request as IncomingMessage & Partial<Pick<Http2ServerRequest, 'stream'>>).stream?.session ?? request.socket;
}

function readIdentity(socket: TLSSocket): UserInfo | undefined {
  if (socket.authorized !== true) return undefined;
  const subject = socket.getPeerCertificate().subject as unknown as Record<string, string | string[] | undefined> | undefined;
  const name = words(subject?.['CN'])[0];
  if (name === undefined) return undefined;
  return { name, groups: [...words(subject?.['O']), 'system:authenticated'] };
}
