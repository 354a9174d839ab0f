import type { Socket } from 'node:net';
import { isIP } from 'node:net';
import { type AgentRequest, HttpProblem } from '../http/request.ts';

/**
 * True for a connection that began on this machine: from a loopback address, or from the very address that it leads to.
 */
export function isFromHere({ remoteAddress, localAddress }: Pick<Socket, 'remoteAddress' | 'localAddress'>): boolean {
  const plain = remoteAddress?.replace(/^::ffff:/i, '') ?? '';
  if (plain === '::1' || (isIP(plain) === 4 && plain.startsWith('127.'))) return true;
  return plain !== '' && remoteAddress === localAddress;
}

/**
 * For what lets a caller run what they like on this machine. The defaults of the options let anybody in from anywhere,
 * so who is not known must at least be on the machine already, and be no web page that somebody on it looks at, which
 * browsers mark with `Origin`.
 *
 * @param what is refused, as the subject of a sentence
 * @throws HttpProblem 403
 */
export function requireKnownCaller(
  { caller, incoming }: Pick<AgentRequest, 'caller' | 'incoming'>,
  what: string,
): void {
  if (!caller.anonymous || (isFromHere(incoming.socket) && incoming.headers.origin === undefined)) return;
  throw new HttpProblem(
    403,
    `Forbidden (user=${caller.name}): ${what} for callers of this machine, or for those who show who they are (--client-ca-file, --authentication-token-webhook)`,
  );
}
