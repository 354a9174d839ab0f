import type { CallOptions, Cluster } from './net/cluster.ts';
import { isAnswerTooLarge } from './net/etcd-errors.ts';
import { encodeRange, type RangeRequest } from './wire/requests.ts';
import { decodeRange, type RangeAnswer } from './wire/responses.ts';

const firstKeys = 500;
const mostKeys = 2000;
const pageBytes = 4 * 1024 * 1024;

export interface ListPage extends RangeAnswer {
  /** Size of the answer with all its entries, in bytes. */
  readonly sizeBytes: number;
}

/**
 * Reads pages of a size that fits the entries of the store: about four megabytes and at most 2000 keys. etcd has no
 * limit in bytes, so that a page that exceeds the largest message is requested again with fewer keys.
 */
export class ListPages {
  readonly #cluster: Cluster;
  #bytesPerKey = pageBytes / firstKeys;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  async read(request: RangeRequest, limit: number, options: CallOptions): Promise<ListPage> {
    for (;;) {
      const keys = request.keysOnly === true ? mostKeys : this.#pageKeys();
      let sizeBytes = 0;
      const decode = (answer: Buffer) => {
        sizeBytes = answer.length;
        return decodeRange(answer);
      };
      try {
        const page = encodeRange({ ...request, limit: Math.min(keys, limit) });
        const answer = await this.#cluster.read('/etcdserverpb.KV/Range', page, decode, options);
        if (request.keysOnly !== true && answer.kvs.length > 0) this.#adapt(sizeBytes / answer.kvs.length);
        return { ...answer, sizeBytes };
      } catch (error) {
        if (!isAnswerTooLarge(error) || keys === 1) throw error;
        this.#bytesPerKey = Math.max(pageBytes / keys, this.#bytesPerKey) * 4;
      }
    }
  }

  #pageKeys(): number {
    return Math.min(Math.max(Math.floor(pageBytes / this.#bytesPerKey), 1), mostKeys);
  }

  /**
   * Updates the estimated entry size, which determines the number of keys of a page: immediately to a larger size,
   * gradually to a smaller one.
   */
  #adapt(bytesPerKey: number): void {
    this.#bytesPerKey = bytesPerKey > this.#bytesPerKey ? bytesPerKey : (this.#bytesPerKey * 3 + bytesPerKey) / 4;
  }
}
