import type { IncomingMessage } from 'node:http';
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
  const socket = request.socket as TLSSocket;
  let known = identities.get(socket);
  if (known === undefined) {
    known = readIdentity(socket) ?? 'none';
    identities.set(socket, known);
  }
  return known === 'none' ? undefined : known;
}

function readIdentity(socket: TLSSocket): UserInfo | undefined {
  if (socket.authorized !== true) return undefined;
  const subject = socket.getPeerCertificate().subject as unknown as Record<string, string | string[] | undefined> | undefined;
  const name = words(subject?.['CN'])[0];
  if (name === undefined) return undefined;
  return { name, groups: [...words(subject?.['O']), 'system:authenticated'] };
}
