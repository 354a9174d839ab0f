import type { Workload } from '@keelson/conformance';
import type { Store } from '@keelson/core/storage-adapter';
import type { ExecutionContext } from 'ava';
import { sleep } from './fault-run.ts';

const everyMs = 200;

/** Compaction that is under way. */
export interface Compaction {
  /** Bounds that the store took. */
  readonly taken: number;
  stop(): Promise<void>;
}

/**
 * Has a store let go of its history every 200 ms, up to the newest revision that is safe: everything before it has been
 * observed by a watch of each kind, so the checker misses nothing. A watch that is slower ends with
 * 410. A call that the database does not answer is followed by the next one; the history has each before it is
 * made.
 */
export function compactAllTheTime(t: ExecutionContext, store: Store, workload: Workload): Compaction {
  let taken = 0;
  let bound = 0;
  let running = true;
  const compact = async (): Promise<void> => {
    while (running) {
      const safe = workload.witnessed;
      if (safe > bound) {
        workload.recorder.release(safe);
        const done = await store.compact(safe).then(
          () => true,
          () => false,
        );
        if (done) {
          taken += 1;
          bound = safe;
        }
      }
      await sleep(everyMs);
    }
  };
  const over = compact();
  const stop = async (): Promise<void> => {
    running = false;
    await over;
    await store.close();
  };
  t.teardown(stop);
  return {
    get taken() {
      return taken;
    },
    stop,
  };
}
