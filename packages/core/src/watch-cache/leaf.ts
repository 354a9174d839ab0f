import type { Droppable } from '../storage/byte-budget.ts';
import type { PartForm, Pin, SharedPart } from '../storage/resource-storage.ts';
import type { StorageMemory } from '../storage/storage-memory.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import type { UsageBudget } from '../storage/usage-budget.ts';

/** Objects of one leaf: a block of about 190 KiB at 1.5 KiB per object, while copying the leaf costs only 1 KiB. */
export const leafCapacity = 128;
/** The objects of larger leaves are sent one by one, because a contiguous copy would gain nothing. */
export const largestBlock = 1024 * 1024;
/** Leaves with more stored bytes have no shared parts, whose consumers join their bytes. */
export const largestPart = 4 * 1024 * 1024;

const comma = 0x2c;

/** Token of the index that may change a node in place. A node with another token is copied before a change. */
export type Owner = object;

export class Leaf implements Droppable {
  readonly owner: Owner;
  readonly items: StoredObject[];
  /** `,json,json,...` of all items, if it was built since the last change. */
  block: Buffer | undefined = undefined;
  /**
   * Undefined for a retired leaf, which is not (or no longer) part of the live index, only of snapshots: it keeps no
   * derived data and moves no bytes.
   */
  #memory: StorageMemory | undefined;
  /**
   * Whether the leaf is in the budget of list blocks: its block copies store-owned bytes, or the next list builds it.
   */
  #shared = false;
  #values: LeafValues | undefined = undefined;
  /** The shared parts by their forms; without an object that is corrupt, and not for large leaves. */
  #parts: Map<string, SharedPart> | undefined = undefined;
  /** Number of items changed since all items were last copied into one block. */
  scattered = 0;

  /** @param memory undefined: the leaf is retired from the beginning. */
  constructor(owner: Owner, items: StoredObject[], memory: StorageMemory | undefined) {
    this.owner = owner;
    this.items = items;
    this.#memory = memory;
    this.scattered = items.length;
  }

  get size(): number {
    return this.items.length;
  }

  /**
   * Whether the leaf has a block, or building one is worth its memory. A block of store-owned objects, which the store
   * has in memory too, is built only when the leaf was listed shortly before.
   */
  get blockWorth(): boolean {
    if (this.block !== undefined || this.#memory?.listBlocks.includes(this)) return true;
    return !this.items.some((item) => item.shared);
  }

  /** Called by a list that does not use a block; a further list within two seconds builds one. */
  listed(): void {
    if (this.#memory === undefined) return;
    this.#shared = true;
    this.#memory.listBlocks.touch(this, 0);
  }

  /**
   * The block of the leaf, built when needed; undefined when it would be too large or an item is corrupt. A retired
   * leaf does not keep it.
   */
  blockBytes(): Buffer | undefined {
    if (this.block !== undefined) {
      if (this.#shared) this.#memory?.listBlocks.touch(this, this.block.length);
      return this.block;
    }
    let length = 0;
    for (const item of this.items) {
      // A leaf with a corrupt item has no block; its items are listed one by one.
      if (item.corrupt) return undefined;
      length += item.byteLength + 1;
    }
    if (length > largestBlock) return undefined;
    const block = Buffer.allocUnsafeSlow(length);
    let end = 0;
    let shared = false;
    for (const item of this.items) {
      block[end] = comma;
      const start = end + 1;
      end = item.copyTo(block, start);
      if (item.shared) shared = true;
      else if (this.#memory !== undefined) item.moved(block, start);
    }
    if (this.#memory !== undefined) {
      this.block = block;
      this.scattered = 0;
      this.#shared = shared;
      if (shared) this.#memory.listBlocks.touch(this, length);
    }
    return block;
  }

  /**
   * All items as a part of lists in a form, which is the same until an item changes; undefined when the items are
   * listed one by one.
   *
   * @param isFirst whether the list begins with this leaf
   */
  part(form: PartForm, isFirst: boolean): SharedPart | undefined {
    if (this.#parts === undefined) {
      let length = 0;
      for (const item of this.items) {
        if (item.corrupt) return undefined;
        length += item.byteLength;
      }
      if (length > largestPart) return undefined;
      this.#parts = new Map();
    }
    const id = isFirst ? `first ${form.id}` : form.id;
    let part = this.#parts.get(id);
    if (part === undefined) {
      part = { content: {}, pieces: () => form.pieces(this.items, isFirst) };
      this.#parts.set(id, part);
    }
    return part;
  }

  /** Positions of the items with the pinned value, in order; undefined when all items have to be inspected. */
  pinned(pin: Pin): readonly number[] | undefined {
    if (this.#memory === undefined) return undefined;
    this.#values ??= new LeafValues(this.#memory.selectorIndexes);
    return this.#values.positions(pin, this.items);
  }

  /** Releases the block, unless the bytes of an item lie in it alone. */
  drop(): void {
    if (this.items.every((item) => item.shared)) this.block = undefined;
  }

  /** Called after an object was added: its bytes stay where they are until the leaf is full. */
  grown(): void {
    this.#outdate();
  }

  /** Called when the leaf leaves the live index. */
  retire(): void {
    this.#outdate();
    this.#memory = undefined;
  }

  /** Drops the derived data, which no longer match the items or must not be kept. */
  #outdate(): void {
    this.block = undefined;
    this.#parts = undefined;
    this.#values?.drop();
    if (this.#shared) this.#memory?.listBlocks.forget(this);
    this.#shared = false;
  }

  /**
   * Called after every other change, with the new object, if there is one. Store-owned bytes stay where they are. When
   * more than half of the items are outside the last block, all are copied into a new one. This frees the old block and
   * the slabs of small buffers, at a constant cost per change.
   */
  changed(object?: StoredObject): void {
    this.#outdate();
    if (object?.shared) return;
    this.scattered++;
    if (this.scattered > 16 && this.scattered * 2 > this.items.length) this.layOut();
  }

  /** Copies all items into one block, unless some are store-owned. */
  layOut(): void {
    this.scattered = 0;
    if (!this.items.some((item) => item.shared)) this.blockBytes();
  }
}

type Positions = ReadonlyMap<string, readonly number[]>;

const none: readonly number[] = [];
/** Approximate memory of a map of positions, per item and per value, in bytes. */
const itemBytes = 8;
const valueBytes = 96;

/**
 * Positions of the objects of a leaf by the value of an attribute, so that a list that selects one value inspects few
 * objects. The positions are determined when an attribute is used for the second time while the leaf is unchanged.
 */
export class LeafValues implements Droppable {
  readonly #budget: UsageBudget;
  /** Undefined for an attribute that was used once. */
  readonly #attributes = new Map<string, Positions | undefined>();
  #bytes = 0;

  constructor(budget: UsageBudget) {
    this.#budget = budget;
  }

  /**
   * Positions of the items that have the value, in order; undefined when all items have to be inspected. All items must
   * be readable.
   */
  positions({ attribute, value, read }: Pin, items: readonly StoredObject[]): readonly number[] | undefined {
    let positions = this.#attributes.get(attribute);
    if (positions === undefined && this.#attributes.has(attribute)) {
      const made = positionsByValue(items, read);
      this.#bytes += items.length * itemBytes + made.size * valueBytes;
      positions = made;
    }
    this.#attributes.set(attribute, positions);
    this.#budget.touch(this, this.#bytes);
    return positions && (positions.get(value) ?? none);
  }

  /** Called when the budget is exceeded, and when the items change. */
  drop(): void {
    if (this.#attributes.size === 0) return;
    this.#attributes.clear();
    this.#bytes = 0;
    this.#budget.forget(this);
  }
}

function positionsByValue(items: readonly StoredObject[], read: Pin['read']): Positions {
  const positions = new Map<string, number[]>();
  items.forEach((item, position) => {
    const value = read(item);
    if (value === undefined) return;
    const earlier = positions.get(value);
    if (earlier === undefined) positions.set(value, [position]);
    else earlier.push(position);
  });
  return positions;
}

/** Approximate memory of a kept selection without its objects, in bytes. */
const selectionBytes = 128;

/**
 * The objects that predicates select among the items of one node, by the identity of the predicate, so that a repeated
 * list inspects the objects of changed nodes only. The node must not change.
 */
export class KeptSelections implements Droppable {
  readonly #budget: UsageBudget;
  readonly #selections = new Map<string, readonly StoredObject[]>();
  #bytes = 0;

  constructor(budget: UsageBudget) {
    this.#budget = budget;
  }

  /** What the predicate selects, in order; undefined when it is not kept. */
  get(predicateId: string): readonly StoredObject[] | undefined {
    const found = this.#selections.get(predicateId);
    if (found !== undefined) this.#budget.touch(this, this.#bytes);
    return found;
  }

  keep(predicateId: string, objects: readonly StoredObject[]): void {
    if (!this.#selections.has(predicateId)) this.#bytes += selectionBytes + objects.length * itemBytes;
    this.#selections.set(predicateId, objects);
    this.#budget.touch(this, this.#bytes);
  }

  /** Called when the budget is exceeded. */
  drop(): void {
    this.#selections.clear();
    this.#bytes = 0;
  }

  /** Called when the node leaves the live index. */
  forget(): void {
    this.drop();
    this.#budget.forget(this);
  }
}
