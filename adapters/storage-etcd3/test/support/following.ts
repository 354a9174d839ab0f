import { StorageError } from '@keelson/core';
import type { Change, KeyRange, Revision, Store, WatchStream } from '@keelson/core/storage-adapter';

export const everything: KeyRange = { start: '/', end: '0' };

export async function put(
  store: Store,
  key: string,
  value: string | Uint8Array,
  expect: Revision = 0,
): Promise<Revision> {
  const result = await store.write({ op: 'put', key, value: Buffer.from(value), expect });
  if (!result.ok) throw new Error(`${key} expected at ${expect} is at ${result.current?.modRevision}`);
  return result.revision;
}

/** Polls a condition until it holds. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
  timeoutMs = 30_000,
): Promise<void> {
  const end = Date.now() + timeoutMs;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`timed out after ${timeoutMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

export async function failureOf(action: Promise<unknown>): Promise<StorageError> {
  try {
    await action;
  } catch (error) {
    if (error instanceof StorageError) return error;
    throw error;
  }
  throw new Error('expected a failure');
}

/** Reads a stream to its end in the background and records violations of the guarantees of a stream. */
export class Follower {
  readonly stream: WatchStream;
  readonly changes: Change[] = [];
  failure: unknown;
  ended = false;
  readonly faults: string[] = [];
  readonly over: Promise<void>;
  #last: Revision;

  constructor(stream: WatchStream, after: Revision) {
    this.stream = stream;
    this.#last = after;
    this.over = this.#run();
  }

  static async open(store: Store, after: Revision, options: { readonly prevValue?: boolean } = {}): Promise<Follower> {
    return new Follower(await store.watch(everything, { after, ...options }), after);
  }

  /** Waits for the frontier. */
  async reach(revision: Revision): Promise<this> {
    const advance = this.stream.advanceTo(revision);
    await Promise.race([advance, this.over.then(() => Promise.reject(this.failure ?? new Error('the stream ended')))]);
    return this;
  }

  get revisions(): Revision[] {
    return this.changes.map((change) => change.revision);
  }

  async #run(): Promise<void> {
    try {
      for await (const batch of this.stream) {
        for (const change of batch.changes) {
          if (
            change.revision < this.#last ||
            (change.revision === this.#last &&
              !batch.changes.some((c) => c !== change && c.revision === change.revision))
          ) {
            this.faults.push(`${change.key}@${change.revision} after ${this.#last}`);
          }
          if (change.revision > batch.frontier)
            this.faults.push(`${change.revision} beyond the frontier ${batch.frontier}`);
          this.#last = change.revision;
          this.changes.push(change);
        }
        this.#last = Math.max(this.#last, batch.frontier);
      }
    } catch (error) {
      this.failure = error;
    }
    this.ended = true;
  }
}
