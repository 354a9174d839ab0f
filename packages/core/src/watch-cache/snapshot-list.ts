import type { Clock } from '../runtime/clock.ts';
import { eventLoopTurns } from '../runtime/turn-queue.ts';
import { joinObjects, ObjectList } from '../storage/object-list.ts';
import type {
  ListPosition,
  ObjectPredicate,
  PartForm,
  PieceSource,
  Pin,
  Representation,
  SharedPart,
  StorageListOptions,
  StoredList,
} from '../storage/resource-storage.ts';
import type { Revision } from '../storage/store.ts';
import { throwIfAborted } from '../storage/store-helpers.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import type { IndexSnapshot, LeafSlice } from './ordered-index.ts';

const comma = Buffer.from(',');
/** In lists of at most this many objects every leaf has a block, in longer lists only leaves where it pays. */
const fewObjects = 2000;

/** A page that is a range of a snapshot. Its bytes are those of the leaves of the index. */
export class SnapshotList implements StoredList {
  readonly revision: Revision;
  readonly next?: ListPosition;
  readonly remaining?: number;
  readonly #snapshot: IndexSnapshot;
  readonly #from: number;
  readonly #to: number;

  /** The objects with ranks in `[from, to)`; `remaining` more follow. */
  constructor(snapshot: IndexSnapshot, revision: Revision, from: number, to: number, remaining: number) {
    this.#snapshot = snapshot;
    this.revision = revision;
    this.#from = from;
    this.#to = to;
    if (remaining === 0) return;
    const [last] = snapshot.items(to - 1, to);
    if (last === undefined) return;
    this.next = { revision, after: last.key };
    this.remaining = remaining;
  }

  get count(): number {
    return this.#to - this.#from;
  }

  objects(): Iterable<StoredObject> {
    return this.#snapshot.items(this.#from, this.#to);
  }

  get ready(): boolean {
    if (this.count <= fewObjects) return true;
    for (const { leaf } of this.#snapshot.slices(this.#from, this.#to)) if (!leaf.blockWorth) return false;
    return true;
  }

  *chunks(representation: Representation, _separator: ',', pieces?: PieceSource): Generator<Buffer, void, undefined> {
    if (!representation.stored) {
      yield* joinObjects(this.objects(), representation, pieces);
      return;
    }
    const every = this.count <= fewObjects;
    let first = true;
    for (const slice of this.#snapshot.slices(this.#from, this.#to)) {
      const bytes = sliceBytes(slice, every);
      if (bytes !== undefined) {
        yield first ? bytes.subarray(1) : bytes;
      } else {
        if (!first) yield comma;
        yield* joinObjects(slice.leaf.items.slice(slice.from, slice.to), representation, pieces);
      }
      first = false;
    }
  }

  *parts(form: PartForm): Generator<Buffer | SharedPart, void, undefined> {
    let first = true;
    for (const { leaf, from, to } of this.#snapshot.slices(this.#from, this.#to)) {
      const part = to - from === leaf.items.length ? leaf.part(form, first) : undefined;
      if (part === undefined) yield* form.pieces(leaf.items.slice(from, to), first);
      else yield part;
      first = false;
    }
  }
}

/** The part of the leaf's block that belongs to the slice, with a leading comma. */
function sliceBytes({ leaf, from, to }: LeafSlice, every: boolean): Buffer | undefined {
  // For a small part of a leaf without a block it is not worth building one.
  if (leaf.block === undefined && to - from < leaf.items.length / 4) return undefined;
  if (!every && !leaf.blockWorth) {
    leaf.listed();
    return undefined;
  }
  const block = leaf.blockBytes();
  if (block === undefined || to - from === leaf.items.length) return block;
  const start = lengthOf(leaf.items, 0, from);
  return block.subarray(start, start + lengthOf(leaf.items, from, to));
}

function lengthOf(items: readonly StoredObject[], from: number, to: number): number {
  let length = 0;
  for (let i = from; i < to; i++) length += (items[i] as StoredObject).byteLength + 1;
  return length;
}

/** Longest time of matching objects before other work of the process gets its turn, checked after each leaf. */
const sliceMs = 2;

/**
 * The objects of a snapshot with ranks in `[from, to)` that a predicate matches. What it matched in parts that have not
 * changed since an earlier list is not inspected again; in other parts, a pinned value is looked up in leaves that have
 * an index of it.
 *
 * @throws StorageError `Corrupt` when an inspected object is corrupt, `Timeout` when the signal aborts.
 */
export async function selectedList(
  state: IndexSnapshot,
  revision: Revision,
  { from, to }: { readonly from: number; readonly to: number },
  options: StorageListOptions,
  clock: Clock,
): Promise<StoredList> {
  const { predicate, signal, limit = 0 } = options;
  const most = limit > 0 ? limit : Number.POSITIVE_INFINITY;
  const objects: StoredObject[] = [];
  // A corrupt object must fail the list, whatever its value is.
  const pin = state.corrupt > 0 ? undefined : predicate.pin;
  let sliceEnd = clock.monotonic() + sliceMs;
  for (const { size, slices, selections } of state.parts(from, to)) {
    const kept = selections?.get(predicate.id);
    if (kept !== undefined) {
      for (let i = 0; i < kept.length && objects.length < most; i++) objects.push(kept[i] as StoredObject);
    } else {
      const before = objects.length;
      let inspected = 0;
      for (const slice of slices) {
        addMatches(objects, slice, predicate, pin, most);
        if (objects.length >= most) break;
        inspected += slice.to - slice.from;
        if (clock.monotonic() > sliceEnd) {
          await eventLoopTurns.pass();
          throwIfAborted(signal);
          sliceEnd = clock.monotonic() + sliceMs;
        }
      }
      if (inspected === size) selections?.keep(predicate.id, objects.slice(before));
    }
    if (objects.length >= most) {
      const last = (objects[most - 1] as StoredObject).key;
      return new ObjectList(objects, revision, state.rankAfter(last) < to ? { revision, after: last } : undefined);
    }
  }
  return new ObjectList(objects, revision);
}

/** Adds the objects of a slice that the predicate matches, until there are `most`. */
function addMatches(
  objects: StoredObject[],
  { leaf, from, to }: LeafSlice,
  predicate: ObjectPredicate,
  pin: Pin | undefined,
  most: number,
): void {
  const pinned = pin && leaf.pinned(pin);
  const end = pinned === undefined ? to : pinned.length;
  for (let i = pinned === undefined ? from : 0; i < end && objects.length < most; i++) {
    const position = pinned === undefined ? i : (pinned[i] as number);
    if (position < from || position >= to) continue;
    const object = leaf.items[position] as StoredObject;
    if (predicate.matches(object.readable())) objects.push(object);
  }
}
