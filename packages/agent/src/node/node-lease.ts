import { type ApiClient, formatMicroTime, isStatusError } from '@keelson/core';
import { type Clock, type Logger, pause } from '@keelson/core/runtime';
import { Lease } from '@keelson/kinds';

export interface NodeLeaseOptions {
  readonly api: ApiClient;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly durationSeconds: number;
}

const namespace = 'kube-node-lease';
const retryMs = 1_000;

/** The heartbeat of the node: a lease with the node's name, renewed four times in its duration. */
export class NodeLease {
  readonly #options: NodeLeaseOptions;
  readonly #stop = new AbortController();
  #lease: Lease | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(options: NodeLeaseOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running = this.#repeat();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #repeat(): Promise<void> {
    const { clock, logger, durationSeconds } = this.#options;
    const { signal } = this.#stop;
    const periodMs = (durationSeconds * 1000) / 4;
    while (!signal.aborted) {
      let waitMs = periodMs;
      try {
        this.#lease = await this.#renew();
      } catch (err) {
        this.#lease = undefined;
        waitMs = Math.min(retryMs, periodMs);
        // Without the namespace the lease cannot exist; the status of the node serves as heartbeat.
        if (isStatusError(err, 'NotFound')) waitMs = periodMs;
        else if (!signal.aborted) logger.warn('renewing the node lease failed', { component: 'node-lease', err });
      }
      await pause(clock, waitMs, signal);
    }
  }

  async #renew(): Promise<Lease> {
    const { api, nodeName, clock, durationSeconds } = this.#options;
    const { signal } = this.#stop;
    const leases = api.resource(Lease).namespace(namespace);
    const now = formatMicroTime(new Date(clock.now()));
    const spec = { holderIdentity: nodeName, leaseDurationSeconds: durationSeconds, renewTime: now };
    const known = this.#lease ?? (await this.#find());
    if (known !== undefined) return leases.update({ ...known, spec: { ...known.spec, ...spec } }, { signal });
    return leases.create(
      { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: nodeName, namespace }, spec },
      { signal },
    );
  }

  async #find(): Promise<Lease | undefined> {
    const { api, nodeName } = this.#options;
    try {
      return await api.resource(Lease).namespace(namespace).get(nodeName, { signal: this.#stop.signal });
    } catch (error) {
      if (isStatusError(error, 'NotFound')) return undefined;
      throw error;
    }
  }
}
