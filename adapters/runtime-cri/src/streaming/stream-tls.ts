import { clientTls, type PinnedTls } from '../connection/cri-connection.ts';

/**
 * TLS options for a streaming server. With a pinned certificate, the server is verified like the daemon. Otherwise a
 * server on loopback is not verified, because it has a self-signed certificate.
 */
export function streamTls(url: string, pinned: PinnedTls | undefined): object {
  if (pinned !== undefined) return clientTls(pinned);
  return /^https:\/\/(127\.\d+\.\d+\.\d+|localhost|\[::1\])[:/]/.test(url) ? { rejectUnauthorized: false } : {};
}
