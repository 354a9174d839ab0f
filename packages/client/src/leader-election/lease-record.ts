import { type ApiClient, formatMicroTime, type KubeObject, type ResourceClient } from '@keelson/core';

/** The part of a Lease that elections use. */
export interface LeaseSpec {
  readonly holderIdentity?: string;
  readonly leaseDurationSeconds?: number;
  readonly acquireTime?: string;
  readonly renewTime?: string;
  readonly leaseTransitions?: number;
}

/** An object of coordination.k8s.io/v1, kind Lease. */
export interface LeaseObject extends KubeObject {
  readonly spec?: LeaseSpec;
}

/** The leases of a namespace. */
export function leasesOf(client: ApiClient, namespace: string): ResourceClient<LeaseObject> {
  const leases = client.dynamic({ group: 'coordination.k8s.io', version: 'v1', resource: 'leases' });
  return leases.namespace(namespace) as ResourceClient<LeaseObject>;
}

/** The holder of a lease; '' for none. */
export function holderOf(lease: LeaseObject | undefined): string {
  return lease?.spec?.holderIdentity ?? '';
}

/** The fields that a candidate writes. */
export interface Claim {
  readonly identity: string;
  readonly leaseDurationMs: number;
  /** Wall clock time in epoch milliseconds, for information: candidates do not compare clocks. */
  readonly nowMs: number;
}

/** The spec with which a candidate acquires or renews a lease. */
export function claimedSpec(before: LeaseSpec | undefined, { identity, leaseDurationMs, nowMs }: Claim): LeaseSpec {
  const held = before?.holderIdentity === identity;
  const now = formatMicroTime(new Date(nowMs));
  return {
    holderIdentity: identity,
    leaseDurationSeconds: Math.max(1, Math.ceil(leaseDurationMs / 1000)),
    acquireTime: held ? (before.acquireTime ?? now) : now,
    renewTime: now,
    leaseTransitions: (before?.leaseTransitions ?? 0) + (held || before === undefined ? 0 : 1),
  };
}

/** The spec with which a holder releases a lease, so that others do not wait for its expiry. */
export function releasedSpec(before: LeaseSpec | undefined, nowMs: number): LeaseSpec {
  const now = formatMicroTime(new Date(nowMs));
  return { ...before, holderIdentity: '', leaseDurationSeconds: 1, acquireTime: now, renewTime: now };
}
