import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import { type AuthenticateToken, type Clock, statusErrors, type UserInfo } from '@keelson/core';
import type { KnownToken } from './token-file.ts';

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

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/** Finds the user of a token. The comparison takes constant time for every configured token. */
export function tokenUsers(tokens: readonly KnownToken[]): AuthenticateToken {
  const known = tokens.map(({ token, user }) => ({ hash: digest(token), user }));
  return async (token, audiences) => {
    const hash = digest(token);
    let found: UserInfo | undefined;
    for (const one of known) if (timingSafeEqual(one.hash, hash)) found = one.user;
    // Tokens of a file are valid for this server only, not for other audiences.
    return found === undefined || audiences.length > 0 ? undefined : { user: found };
  };
}

/**
 * The user of the bearer token of a request; undefined without a token.
 *
 * @param authenticateToken undefined when no tokens are configured
 * @throws StatusError 401 for an unknown token, and for `Bearer` without a token
 */
export async function authenticateBearer(
  { headers: { authorization = '' } }: IncomingMessage,
  authenticateToken: AuthenticateToken | undefined,
): Promise<UserInfo | undefined> {
  const shown = /^\s*bearer(?:\s+(\S+)\s*$|\s|$)/i.exec(authorization);
  if (shown === null) return undefined;
  const found = shown[1] === undefined ? undefined : await authenticateToken?.(shown[1], []);
  if (found === undefined) throw statusErrors.unauthorized();
  return found.user;
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
