import type { Socket } from 'node:net';
import { isIP } from 'node:net';
import { type AgentRequest, HttpProblem } from '../http/request.ts';

/**
 * True for a connection from this host: from a loopback address, or from the address to which it leads.
 */
export function isFromHere({ remoteAddress, localAddress }: Pick<Socket, 'remoteAddress' | 'localAddress'>): boolean {
  const plain = remoteAddress?.replace(/^::ffff:/i, '') ?? '';
  if (plain === '::1' || (isIP(plain) === 4 && plain.startsWith('127.'))) return true;
  return plain !== '' && remoteAddress === localAddress;
}

/**
 * Protects requests that can run commands on this host. The default options accept anonymous clients from everywhere,
 * so an anonymous client must at least be on this host, and must not be a web page, which browsers mark with `Origin`.
 *
 * @param what the rejected function, as the subject of a sentence
 * @throws HttpProblem 403
 */
export function requireKnownCaller(
  { caller, incoming }: Pick<AgentRequest, 'caller' | 'incoming'>,
  what: string,
): void {
  if (!caller.anonymous || (isFromHere(incoming.socket) && incoming.headers.origin === undefined)) return;
  throw new HttpProblem(
    403,
    `Forbidden (user=${caller.name}): ${what} only for clients on this host, or for authenticated clients (--client-ca-file, --authentication-token-webhook)`,
  );
}
