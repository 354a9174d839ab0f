import type { Change, KeyRange, Revision, WatchStream } from '@keelson/core/storage-adapter';
import type { PostgresStore } from '../../src/index.ts';

export const everything: KeyRange = { start: '/', end: '0' };

export function bytes(text: string): Buffer {
  return Buffer.from(text);
}

export async function waitFor(
  what: string,
  condition: () => boolean | Promise<boolean>,
  timeoutMs = 30_000,
): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`timed out after ${timeoutMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Consumes a watch in the background and keeps what it saw, with the time of each change. */
export class Following {
  readonly stream: WatchStream;
  readonly changes: Change[] = [];
  readonly at: number[] = [];
  failure: unknown;
  readonly ended: Promise<void>;

  private constructor(stream: WatchStream) {
    this.stream = stream;
    this.ended = this.#consume();
  }

  static async open(store: PostgresStore, after: Revision, prevValue = false): Promise<Following> {
    return new Following(await store.watch(everything, { after, prevValue }));
  }

  get revisions(): Revision[] {
    return this.changes.map((change) => change.revision);
  }

  /** Until the stream has delivered everything up to `revision`. */
  async reached(revision: Revision, timeoutMs?: number): Promise<void> {
    await waitFor(
      `a watch at ${revision}`,
      () => {
        if (this.failure !== undefined) throw this.failure;
        return this.stream.frontier >= revision;
      },
      timeoutMs,
    );
  }

  async close(): Promise<void> {
    await this.stream.close();
    await this.ended;
  }

  async #consume(): Promise<void> {
    try {
      for await (const batch of this.stream) {
        for (const change of batch.changes) {
          this.changes.push(change);
          this.at.push(performance.now());
        }
      }
    } catch (error) {
      this.failure = error;
    }
  }
}

/** Creates a key and returns its revision. */
export async function create(store: PostgresStore, key: string, value = 'x', ttlMs?: number): Promise<Revision> {
  const op = { op: 'put', key, value: bytes(value), expect: 0 } as const;
  const result = await store.write(ttlMs === undefined ? op : { ...op, ttlMs });
  if (!result.ok) throw new Error(`${key} exists`);
  return result.revision;
}

/** The numbers from `first` to `last`. */
export function span(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}
