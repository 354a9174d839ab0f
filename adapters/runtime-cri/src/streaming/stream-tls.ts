import { clientTls, type PinnedTls } from '../connection/cri-connection.ts';

/**
 * How the streaming server at an address is verified: as the connection to the daemon is, if that is pinned. Otherwise
 * one on this machine has a certificate that it made for itself.
 */
export function streamTls(url: string, pinned: PinnedTls | undefined): object {
  if (pinned !== undefined) return clientTls(pinned);
  return /^https:\/\/(127\.\d+\.\d+\.\d+|localhost|\[::1\])[:/]/.test(url) ? { rejectUnauthorized: false } : {};
}
