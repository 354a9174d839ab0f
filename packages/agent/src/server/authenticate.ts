import type { IncomingMessage } from 'node:http';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import { type Caller, HttpProblem } from './request.ts';

const anonymous: Caller = { name: 'system:anonymous', groups: ['system:unauthenticated'], anonymous: true };

const words = (value: string | string[] | undefined): string[] =>
  value === undefined ? [] : Array.isArray(value) ? value : [value];

/** Undefined when the connection has no certificate. */
function certificateOf(socket: Partial<TLSSocket>): PeerCertificate | undefined {
  const certificate = socket.getPeerCertificate?.();
  return certificate?.raw === undefined ? undefined : certificate;
}

/**
 * Finds out who asks: by a client certificate of the authorities of --client-ca-file, else nobody in particular where --anonymous-auth
 * allows that. A certificate that cannot be verified is refused; it does not make its owner anonymous.
 */
export function authenticator(options: {
  readonly anonymousAuth: boolean;
  readonly clientCertificates: boolean;
}): (incoming: IncomingMessage) => Caller {
  return ({ socket }) => {
    const certificate = options.clientCertificates ? certificateOf(socket as Partial<TLSSocket>) : undefined;
    if (certificate !== undefined) {
      const subject = certificate.subject as unknown as Record<string, string | string[] | undefined>;
      const [name = ''] = words(subject['CN']);
      if (!(socket as TLSSocket).authorized || name === '') throw new HttpProblem(401, 'Unauthorized');
      return { name, groups: [...words(subject['O']), 'system:authenticated'], anonymous: false };
    }
    if (!options.anonymousAuth) throw new HttpProblem(401, 'Unauthorized');
    return anonymous;
  };
}

/** The read-only port asks nobody. */
export const everybody = (): Caller => anonymous;
