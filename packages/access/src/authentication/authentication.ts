import type { IncomingMessage } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import { type AuthenticateToken, statusErrors, type UserInfo } from '@keelson/core';
import type { Clock } from '@keelson/core/runtime';
import { authenticateBearer } from './bearer-tokens.ts';

/** The user of a connection and the end of the certificate's validity in epoch milliseconds. */
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

/** The object that all requests of a connection share. In HTTP/2 every request has a socket object of its own. */
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

/**
 * Authenticates by certificate, then by token. As in kube-apiserver, a request with invalid credentials is not
 * anonymous, and a valid token is sufficient beside an invalid certificate.
 */
export function authentication(
  authenticateToken: AuthenticateToken | undefined,
  clock: Clock,
): (request: IncomingMessage) => UserInfo | undefined | Promise<UserInfo | undefined> {
  const byCertificate = clientCertificates(clock);
  return (request) => {
    const user = byCertificate(request);
    if (user !== undefined && user !== 'invalid') return user;
    if (user === undefined && request.headers.authorization === undefined) return undefined;
    return authenticateBearer(request, authenticateToken).then((found) => {
      if (found === undefined && user === 'invalid') throw statusErrors.unauthorized();
      return found;
    });
  };
}
