import type { Clock } from '@keelson/core/runtime';
import type { Cluster } from '../net/cluster.ts';
import type { EtcdMetrics } from '../net/etcd-metrics.ts';
import type { KeySpace } from '../wire/key-space.ts';
import { encodePut } from '../wire/requests.ts';
import { decodeTxn } from '../wire/responses.ts';

const intervalMs = 20;
const mark = Buffer.from('mark');

/**
 * An internal record under the prefix. Versions of etcd without reliable progress reports (server-version.ts) send a
 * write of it to watches as a change, which has the current revision. At most one write in 20 ms.
 */
export class Cookie {
  readonly #cluster: Cluster;
  readonly #keys: KeySpace;
  readonly #metrics: EtcdMetrics;
  readonly #clock: Clock;
  #next: Promise<void> | undefined;
  #lastAt = Number.NEGATIVE_INFINITY;

  constructor(cluster: Cluster, keys: KeySpace, metrics: EtcdMetrics, clock: Clock) {
    this.#cluster = cluster;
    this.#keys = keys;
    this.#metrics = metrics;
    this.#clock = clock;
  }

  /** Resolves after a write that began after the call. Callers that arrive before it begins share it. */
  write(): Promise<void> {
    this.#next ??= this.#write();
    return this.#next;
  }

  async #write(): Promise<void> {
    const wait = this.#lastAt + intervalMs - this.#clock.monotonic();
    await new Promise<void>((resolve) => {
      if (wait > 0) this.#clock.after(wait, resolve);
      else resolve();
    });
    this.#next = undefined;
    this.#lastAt = this.#clock.monotonic();
    this.#metrics.progress('cookie');
    await this.#cluster.write('/etcdserverpb.KV/Txn', encodePut(this.#keys.cookie, mark), decodeTxn);
  }
}
