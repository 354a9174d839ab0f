import type { Clock } from '@keelson/core/runtime';
import type { CallOptions, Cluster } from './net/cluster.ts';
import type { EtcdMetrics } from './net/etcd-metrics.ts';
import { encodeLeaseGrant } from './wire/requests.ts';
import { decodeLease } from './wire/responses.ts';

interface Lease {
  readonly id: bigint;
  /** Monotonic time before which etcd does not end the lease. */
  readonly endsAt: number;
  keys: number;
}

/** etcd revokes a lease with all its keys in one transaction. */
const maxKeys = 1000;
/** A key may exist longer than its time to live by this fraction of the time to live, plus one second. */
const slack = 0.05;
const maxTtlSeconds = 9_000_000_000;

/**
 * Leases that are shared by keys whose time to live ends within the same window. A lease never ends before the time of
 * any of its keys, and at most 5 % (or one second, or etcd's minimum of about two seconds) after it. Leases are never
 * renewed; etcd deletes their keys.
 */
export class Leases {
  readonly #cluster: Pick<Cluster, 'read'>;
  readonly #metrics: Pick<EtcdMetrics, 'lease'>;
  readonly #clock: Clock;
  readonly #open = new Map<number, Promise<Lease>>();

  constructor(cluster: Pick<Cluster, 'read'>, metrics: Pick<EtcdMetrics, 'lease'>, clock: Clock) {
    this.#cluster = cluster;
    this.#metrics = metrics;
    this.#clock = clock;
  }

  /** Returns a lease for a key that expires `ttlMs` from now. */
  async for(ttlMs: number, options: CallOptions): Promise<bigint> {
    const ttlSeconds = Math.min(Math.ceil((ttlMs * (1 + slack)) / 1000) + 1, maxTtlSeconds);
    for (;;) {
      const open = this.#open.get(ttlSeconds);
      if (open === undefined) {
        const granted = this.#grant(ttlSeconds, options);
        this.#open.set(ttlSeconds, granted);
        const lease = await granted;
        lease.keys++;
        return lease.id;
      }
      const lease = await open.catch(() => undefined);
      if (lease !== undefined && lease.keys < maxKeys && lease.endsAt >= this.#clock.monotonic() + ttlMs) {
        lease.keys++;
        return lease.id;
      }
      if (this.#open.get(ttlSeconds) === open) this.#open.delete(ttlSeconds);
    }
  }

  /** Drops all leases, after one was revoked before its time. */
  forget(): void {
    this.#open.clear();
  }

  async #grant(ttlSeconds: number, options: CallOptions): Promise<Lease> {
    this.#prune();
    const sentAt = this.#clock.monotonic();
    try {
      // Retried like a read: if etcd grants the lease twice, the unused lease expires.
      const { signal: _, ...shared } = options;
      const answer = await this.#cluster.read(
        '/etcdserverpb.Lease/LeaseGrant',
        encodeLeaseGrant(ttlSeconds),
        decodeLease,
        shared,
      );
      this.#metrics.lease();
      return { id: answer.id, endsAt: sentAt + answer.ttlSeconds * 1000, keys: 0 };
    } catch (error) {
      this.#open.delete(ttlSeconds);
      throw error;
    }
  }

  #prune(): void {
    const now = this.#clock.monotonic();
    for (const [ttl, lease] of this.#open) {
      lease.then(
        ({ endsAt }) => {
          if (endsAt <= now && this.#open.get(ttl) === lease) this.#open.delete(ttl);
        },
        () => {},
      );
    }
  }
}
