import { timeMs } from '@keelson/core';
import type { CertificateSigningRequest } from '@keelson/kinds';

const hourMs = 3_600_000;
/** A request that was decided, or that failed, is kept so long for people to look at. */
const settledMs = hourMs;
/** A request that nobody decides is kept so long. */
const pendingMs = 24 * hourMs;

const settling = ['Approved', 'Denied', 'Failed'];

/** When a request is to be removed, epoch milliseconds: the periods of Kubernetes. */
export function requestEndsAt({ metadata, status }: CertificateSigningRequest, nowMs: number): number {
  const at = (time: string | null | undefined) => (time ? timeMs(time) : undefined) ?? nowMs;
  const settled = (status?.conditions ?? []).filter(({ type }) => settling.includes(type));
  if (settled.length === 0) return at(metadata?.creationTimestamp) + pendingMs;
  return Math.min(...settled.map(({ lastUpdateTime }) => at(lastUpdateTime))) + settledMs;
}
