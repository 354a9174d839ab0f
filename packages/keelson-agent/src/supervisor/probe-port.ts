import { X509Certificate } from 'node:crypto';
import { connect, type TLSSocket } from 'node:tls';
import type { ServingPair } from '@keelson/agent';
import { supervisorName } from './supervisor-pair.ts';

/** Who listens at the address of the supervisor. */
export type Listener =
  | { readonly kind: 'nobody' }
  /** It has the key. The connection is the caller's. */
  | { readonly kind: 'own'; readonly socket: TLSSocket }
  /** Another agent's supervisor, as it says. */
  | { readonly kind: 'foreign' }
  | { readonly kind: 'other'; readonly reason: string }
  /** Connections are taken and nothing is said. */
  | { readonly kind: 'silent' };

export interface ProbeOptions {
  readonly host: string;
  readonly port: number;
  readonly pair: ServingPair;
  readonly timeoutMs: number;
}

/** Finds out who listens, without telling anything but who is asking. */
export function probePort({ host, port, pair, timeoutMs }: ProbeOptions): Promise<Listener> {
  const { key, certificate } = pair;
  return new Promise((resolve) => {
    // The comparison below is the stricter one.
    const socket = connect({
      ...{ host, port, key, cert: certificate, minVersion: 'TLSv1.3', ALPNProtocols: ['h2'] },
      rejectUnauthorized: false,
    });
    const found = (listener: Listener) => {
      clearTimeout(late);
      if (listener.kind !== 'own') socket.destroy();
      resolve(listener);
    };
    const late = setTimeout(() => found({ kind: 'silent' }), timeoutMs);
    // Stays for as long as the connection does.
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED') found({ kind: 'nobody' });
      else found({ kind: 'other', reason: `it does not speak TLS as a supervisor does (${error.message.trim()})` });
    });
    socket.once('secureConnect', () => {
      const shown = socket.getPeerCertificate();
      const raw = shown.raw as Buffer | undefined;
      if (raw?.equals(new X509Certificate(certificate).raw)) found({ kind: 'own', socket });
      else if (shown.subject?.CN === supervisorName) found({ kind: 'foreign' });
      else found({ kind: 'other', reason: 'it shows another certificate' });
    });
  });
}
