import type { CallOptions, Cluster } from './net/cluster.ts';
import type { EtcdMetrics } from './net/etcd-metrics.ts';
import { encodeLeaseGrant } from './wire/requests.ts';
import { decodeLease } from './wire/responses.ts';

interface Lease {
  readonly id: bigint;
  /** Machine time, as etcd's: before it, etcd does not end the lease. */
  readonly endsAt: number;
  keys: number;
}

/** etcd revokes a lease with all its keys in one go. */
const maxKeys = 1000;
/** A key may outlive its time by this part of it, and a second. */
const slack = 0.05;
const maxTtlSeconds = 9_000_000_000;

/**
 * Leases shared by keys whose time ends within the same window: a lease never ends before the time of any of its keys,
 * and at most 5 % (or a second, and etcd's own minimum of about two seconds) after it. Leases are never renewed; etcd
 * deletes what hangs on them.
 */
export class Leases {
  readonly #cluster: Cluster;
  readonly #metrics: EtcdMetrics;
  readonly #open = new Map<number, Promise<Lease>>();

  constructor(cluster: Cluster, metrics: EtcdMetrics) {
    this.#cluster = cluster;
    this.#metrics = metrics;
  }

  /** A lease for a key that lives `ttlMs` from now. */
  async for(ttlMs: number, options: CallOptions): Promise<bigint> {
    const wanted = Math.min(Math.ceil((ttlMs * (1 + slack)) / 1000) + 1, maxTtlSeconds);
    for (;;) {
      const known = this.#open.get(wanted);
      if (known === undefined) {
        const granted = this.#grant(wanted, options);
        this.#open.set(wanted, granted);
        const lease = await granted;
        lease.keys++;
        return lease.id;
      }
      const lease = await known.catch(() => undefined);
      if (lease !== undefined && lease.keys < maxKeys && lease.endsAt >= performance.now() + ttlMs) {
        lease.keys++;
        return lease.id;
      }
      if (this.#open.get(wanted) === known) this.#open.delete(wanted);
    }
  }

  /** The lease is gone before its time: somebody has revoked it. */
  forget(): void {
    this.#open.clear();
  }

  async #grant(ttlSeconds: number, options: CallOptions): Promise<Lease> {
    this.#prune();
    const sentAt = performance.now();
    try {
      // Granting twice leaves a lease that ends by itself, so this is repeated like a read.
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
    const now = performance.now();
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
