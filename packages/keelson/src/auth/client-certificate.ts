import type { IncomingMessage } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import type { PeerCertificate, TLSSocket } from 'node:tls';
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
 * Authenticates users by verified client certificates: see docs/reference/api-rules.md#client-certificates. The result
 * is computed once per connection: undefined without a certificate, `invalid` for one that is expired, from another
 * authority, not issued for clients, or without a common name.
 */
export function clientCertificates(clock: Clock): (request: IncomingMessage) => UserInfo | 'invalid' | undefined {
  const identities = new WeakMap<object, Identity | 'invalid' | 'none'>();
  return (request) => {
    const connection = connectionOf(request);
    let known = identities.get(connection);
    if (known === undefined) {
      known = readIdentity(request.socket as TLSSocket);
      identities.set(connection, known);
    }
    if (known === 'none') return undefined;
    return known === 'invalid' || known.notAfterMs <= clock.now() ? 'invalid' : known.user;
  };
}

/** What all requests of one connection have in common; in HTTP/2 every request has a socket object of its own. */
function connectionOf(request: IncomingMessage): object {
  return (request as IncomingMessage & Partial<Pick<Http2ServerRequest, 'stream'>>).stream?.session ?? request.socket;
}

function readIdentity(socket: TLSSocket): Identity | 'invalid' | 'none' {
  const certificate = socket.getPeerCertificate() as Partial<PeerCertificate> | undefined;
  if (certificate?.raw === undefined) return 'none';
  const subject = certificate.subject as unknown as Record<string, string | string[] | undefined> | undefined;
  const name = words(subject?.['CN'])[0] ?? '';
  if (socket.authorized !== true || name === '' || certificate.valid_to === undefined) return 'invalid';
  const user = { name, groups: [...words(subject?.['O']), 'system:authenticated'] };
  return { user, notAfterMs: Date.parse(certificate.valid_to) };
}
