import type { IncomingMessage } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import type { Clock, UserInfo } from '@keelson/core';

/** Whom a connection belongs to, and until when, epoch milliseconds. */
interface Identity {
  readonly user: UserInfo;
  readonly notAfterMs: number;
}

function words(value: string | string[] | undefined): string[] {
  return value === undefined ? [] : Array.isArray(value) ? value : [value];
}

/**
 * Knows users by verified client certificates: common name = user, organizations = groups (api-conventions 15.2). Looked up once
 * per connection; a connection that outlives its certificate belongs to nobody. Undefined when the connection carries no certificate that the
 * server's authority signed.
 */
export function clientCertificates(clock: Clock): (request: IncomingMessage) => UserInfo | undefined {
  const identities = new WeakMap<object, Identity | 'none'>();
  return (request) => {
    const connection = connectionOf(request);
    let known = identities.get(connection);
    if (known === undefined) {
      known = readIdentity(request.socket as TLSSocket) ?? 'none';
      identities.set(connection, known);
    }
    return known === 'none' || known.notAfterMs <= clock.now() ? undefined : known.user;
  };
}

/** What all requests of one connection have in common; in HTTP/2 every request has a socket object of its own. */
function connectionOf(request: IncomingMessage): object {
  return (request as IncomingMessage & Partial<Pick<Http2ServerRequest, 'stream'>>).stream?.session ?? request.socket;
}

function readIdentity(socket: TLSSocket): Identity | undefined {
  if (socket.authorized !== true) return undefined;
  const certificate = socket.getPeerCertificate();
  const subject = certificate.subject as unknown as Record<string, string | string[] | undefined> | undefined;
  const name = words(subject?.['CN'])[0];
  if (name === undefined) return undefined;
  const user = { name, groups: [...words(subject?.['O']), 'system:authenticated'] };
  return { user, notAfterMs: Date.parse(certificate.valid_to) };
}
