import { X509Certificate } from 'node:crypto';
import { createSecureContext, type PeerCertificate } from 'node:tls';
import { ChannelCredentials } from '@grpc/grpc-js';

/** Each end of a connection knows the one certificate that the other end must show; all of it PEM. */
export interface PinnedTls {
  readonly key: string;
  readonly certificate: string;
  /** The certificate of the other end. It vouches for itself, and its names and purposes mean nothing here. */
  readonly peer: string;
}

/** Both ends are of the same making. */
const oldestVersion = 'TLSv1.3';

/** What a server of TLS is given. */
export function serverTls({ key, certificate, peer }: PinnedTls) {
  return { key, cert: certificate, ca: peer, minVersion: oldestVersion } as const;
}

/**
 * Whether a certificate that was shown is the one that was agreed on. That the other end has its key is proved by the
 * handshake.
 */
export function isPinned(shown: PeerCertificate, peer: string): boolean {
  // Nothing shown is an object without anything.
  const raw = shown.raw as Buffer | undefined;
  return raw?.equals(new X509Certificate(peer).raw) === true;
}

/** In place of the comparison of names. */
function serverCheck({ peer }: PinnedTls): (host: string, shown: PeerCertificate) => Error | undefined {
  return (_, shown) =>
    isPinned(shown, peer) ? undefined : new Error('it shows another certificate than was agreed on');
}

/** What a client of TLS is given. */
export function clientTls(tls: PinnedTls) {
  return { ...serverTls(tls), checkServerIdentity: serverCheck(tls) } as const;
}

/** The same for gRPC. */
export function channelCredentials(tls: PinnedTls | undefined): ChannelCredentials {
  if (tls === undefined) return ChannelCredentials.createInsecure();
  return ChannelCredentials.createFromSecureContext(createSecureContext(serverTls(tls)), {
    checkServerIdentity: serverCheck(tls),
  });
}
