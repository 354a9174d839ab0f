import type { Clock } from '../runtime/clock.ts';
import { eventLoopTurns } from '../runtime/turn-queue.ts';
import { ObjectList } from '../storage/object-list.ts';
import type { StorageListOptions, StoredList } from '../storage/resource-storage.ts';
import type { Revision } from '../storage/store.ts';
import { throwIfAborted } from '../storage/store-checks.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import type { IndexSnapshot } from './index-snapshot.ts';

/**
 * Selectors look at objects for so long before other work of the process gets its turn; a leaf is looked at as a whole.
 */
const sliceMs = 2;

/**
 * The objects of a snapshot with ranks in `[from, to)` that a predicate matches. Values that it pins are looked up
 * where leaves know them.
 *
 * @throws StorageError `Corrupt` when one that has to be looked at cannot be read; the reason of the signal when it
 *   was aborted.
 */
export async function selectedList(
  state: IndexSnapshot,
  revision: Revision,
  { from, to }: { readonly from: number; readonly to: number },
  options: StorageListOptions,
  clock: Clock,
): Promise<StoredList> {
  const { predicate, signal, limit = 0 } = options;
  const objects: StoredObject[] = [];
  // A corrupt object must fail the list, whatever its value is.
  const pin = state.corrupt > 0 ? undefined : predicate.pin;
  let start = from;
  let sliceEnd = clock.monotonic() + sliceMs;
  for (const slice of state.slices(from, to)) {
    const pinned = pin && slice.leaf.pinned(pin);
    const end = pinned === undefined ? slice.to : pinned.length;
    for (let i = pinned === undefined ? slice.from : 0; i < end; i++) {
      const position = pinned === undefined ? i : (pinned[i] as number);
      if (position < slice.from || position >= slice.to) continue;
      const object = slice.leaf.items[position] as StoredObject;
      if (!predicate.matches(object.readable())) continue;
      objects.push(object);
      if (objects.length !== limit) continue;
      const rest = start + position - slice.from + 1 < to;
      return new ObjectList(objects, revision, rest ? { revision, after: object.key } : undefined);
    }
    start += slice.to - slice.from;
    if (start < to && clock.monotonic() > sliceEnd) {
      await eventLoopTurns.pass();
      throwIfAborted(signal);
      sliceEnd = clock.monotonic() + sliceMs;
    }
  }
  return new ObjectList(objects, revision);
}
