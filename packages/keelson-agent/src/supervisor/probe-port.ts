import { X509Certificate } from 'node:crypto';
import { connect, type TLSSocket } from 'node:tls';
import type { ServingPair } from '@keelson/agent';
import { supervisorName } from './supervisor-pair.ts';

/** The process that listens at the endpoint of the supervisor. */
export type Listener =
  | { readonly kind: 'none' }
  /** The supervisor with this key pair. The caller owns the connection. */
  | { readonly kind: 'own'; readonly socket: TLSSocket }
  /** The supervisor of another agent, according to the name in its certificate. */
  | { readonly kind: 'foreign' }
  | { readonly kind: 'other'; readonly reason: string }
  /** Accepts connections and does not answer. */
  | { readonly kind: 'silent' };

export interface ProbeOptions {
  readonly host: string;
  readonly port: number;
  readonly pair: ServingPair;
  readonly timeoutMs: number;
}

/** Determines which process listens. Sends only the TLS handshake. */
export function probePort({ host, port, pair, timeoutMs }: ProbeOptions): Promise<Listener> {
  const { key, certificate } = pair;
  return new Promise((resolve) => {
    // TLS does not verify the certificate (`rejectUnauthorized`): it must equal the pinned one, which is stricter.
    const socket = connect({
      ...{ host, port, key, cert: certificate, minVersion: 'TLSv1.3', ALPNProtocols: ['h2'] },
      rejectUnauthorized: false,
    });
    const settle = (listener: Listener) => {
      clearTimeout(timeout);
      if (listener.kind !== 'own') socket.destroy();
      resolve(listener);
    };
    // Not injected: time limit of a call to another process, which takes real time.
    const timeout = setTimeout(() => settle({ kind: 'silent' }), timeoutMs);
    // The error listener is never removed, because a connection that is returned to the caller may fail later.
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED') settle({ kind: 'none' });
      else settle({ kind: 'other', reason: `it does not use TLS as a supervisor does (${error.message.trim()})` });
    });
    socket.once('secureConnect', () => {
      const presented = socket.getPeerCertificate();
      const raw = presented.raw as Buffer | undefined;
      if (raw?.equals(new X509Certificate(certificate).raw)) settle({ kind: 'own', socket });
      else if (presented.subject?.CN === supervisorName) settle({ kind: 'foreign' });
      else settle({ kind: 'other', reason: 'it presents another certificate' });
    });
  });
}
