import { type ApiClient, isStatusError, type ResourceClient, StatusReason } from '@keelson/core';
import type { Clock } from '@keelson/core/runtime';
import { claimedSpec, holderOf, type LeaseObject, leasesOf, releasedSpec } from './lease-record.ts';

export interface LeaseLockOptions {
  readonly client: ApiClient;
  readonly namespace: string;
  readonly name: string;
  /** Unique identity of this candidate. */
  readonly identity: string;
  readonly leaseDurationMs: number;
  readonly clock: Clock;
}

/** Result of an attempt to acquire or renew the lease; `later` estimates when another attempt may succeed. */
export type LockOutcome = { readonly held: true } | { readonly held: false; readonly laterMs: number };

interface Observed {
  readonly lease: LeaseObject;
  /** Monotonic time at which this version of the lease was first observed. */
  readonly at: number;
}

/**
 * A Lease as observed by one candidate. The lease of another candidate has expired when its object has not changed for
 * the lease duration by the clock of this process. Times in the object are not compared, because clocks may differ.
 */
export class LeaseLock {
  readonly #options: LeaseLockOptions;
  readonly #leases: ResourceClient<LeaseObject>;
  #observed: Observed | undefined;

  constructor(options: LeaseLockOptions) {
    this.#options = options;
    this.#leases = leasesOf(options.client, options.namespace);
  }

  /** The last observed holder; '' for none. */
  get holder(): string {
    return holderOf(this.#observed?.lease);
  }

  /**
   * Acquires or renews the lease. `held` is false when another candidate holds the lease or acquired it concurrently.
   *
   * @throws StatusError, ConnectionError when a request fails
   */
  async tryHold(signal: AbortSignal): Promise<LockOutcome> {
    const { identity } = this.#options;
    // The cached copy of a lease that this candidate holds is usually current, so that one request is sufficient.
    if (this.holder === identity && this.#observed !== undefined) {
      if (await this.#write(this.#observed.lease, signal)) return { held: true };
    }
    const lease = await this.#read(signal);
    if (lease === undefined) return this.#outcome(await this.#create(signal));
    this.#observe(lease);
    const holder = holderOf(lease);
    const leftMs = holder === '' || holder === identity ? 0 : this.#leftMs(lease);
    if (leftMs > 0) return { held: false, laterMs: leftMs };
    return this.#outcome(await this.#write(lease, signal));
  }

  /** Releases the lease if this candidate holds it. */
  async release(signal: AbortSignal): Promise<void> {
    const { identity, clock } = this.#options;
    // The outcome of an aborted renewal is unknown, so the object is read again.
    for (let lease = this.#observed?.lease, attempt = 0; attempt < 2; lease = await this.#read(signal), attempt += 1) {
      if (lease === undefined || holderOf(lease) !== identity) return;
      if (await this.#put({ ...lease, spec: releasedSpec(lease.spec, clock.now()) }, signal)) return;
    }
  }

  #outcome(held: boolean): LockOutcome {
    return held ? { held } : { held, laterMs: 0 };
  }

  async #read(signal: AbortSignal): Promise<LeaseObject | undefined> {
    try {
      return await this.#leases.get(this.#options.name, { signal });
    } catch (error) {
      if (isStatusError(error, StatusReason.NotFound)) return undefined;
      throw error;
    }
  }

  async #create(signal: AbortSignal): Promise<boolean> {
    const { name, namespace } = this.#options;
    try {
      this.#observe(
        await this.#leases.create(
          {
            apiVersion: 'coordination.k8s.io/v1',
            kind: 'Lease',
            metadata: { name, namespace },
            spec: claimedSpec(undefined, this.#claim()),
          },
          { signal },
        ),
      );
      return true;
    } catch (error) {
      if (isStatusError(error, StatusReason.AlreadyExists)) return false;
      throw error;
    }
  }

  #write(lease: LeaseObject, signal: AbortSignal): Promise<boolean> {
    return this.#put({ ...lease, spec: { ...lease.spec, ...claimedSpec(lease.spec, this.#claim()) } }, signal);
  }

  /** The update contains the resourceVersion, so of two candidates only one succeeds. */
  async #put(lease: LeaseObject, signal: AbortSignal): Promise<boolean> {
    try {
      this.#observe(await this.#leases.update(lease, { signal }));
      return true;
    } catch (error) {
      if (isStatusError(error, StatusReason.Conflict) || isStatusError(error, StatusReason.NotFound)) {
        this.#observed = undefined;
        return false;
      }
      throw error;
    }
  }

  #claim() {
    const { identity, leaseDurationMs, clock } = this.#options;
    return { identity, leaseDurationMs, nowMs: clock.now() };
  }

  #observe(lease: LeaseObject): void {
    const before = this.#observed;
    const same =
      before !== undefined &&
      before.lease.metadata?.uid === lease.metadata?.uid &&
      before.lease.metadata?.resourceVersion === lease.metadata?.resourceVersion;
    if (!same) this.#observed = { lease, at: this.#options.clock.monotonic() };
  }

  #leftMs(lease: LeaseObject): number {
    const { clock, leaseDurationMs } = this.#options;
    const seconds = lease.spec?.leaseDurationSeconds ?? 0;
    const lastsMs = seconds > 0 ? seconds * 1000 : leaseDurationMs;
    return Math.max(0, (this.#observed?.at ?? clock.monotonic()) + lastsMs - clock.monotonic());
  }
}
