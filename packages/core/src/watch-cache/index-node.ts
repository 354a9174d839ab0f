import type { Droppable } from '../storage/byte-budget.ts';
import type { Pin } from '../storage/resource-storage.ts';
import type { StorageMemory } from '../storage/storage-memory.ts';
import { orderedForm } from '../storage/store-checks.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import type { UsageBudget } from '../storage/usage-budget.ts';

/**
 * Objects of one leaf: about 190 KiB of blocks at 1.5 KiB an object, where copying a leaf still costs only a kibibyte.
 */
export const leafCapacity = 128;
export const innerCapacity = 64;
/** Leaves with more bytes than this hand out their objects one by one: copying them together would gain nothing. */
export const largestBlock = 1024 * 1024;

const comma = 0x2c;

/** Whoever may change a node in place: the index whose current owner token the node carries. */
export type Owner = object;

export type IndexNode = Leaf | Inner;

export class Leaf implements Droppable {
  readonly owner: Owner;
  readonly items: StoredObject[];
  /** `,json,json,...` of all items, if built since the last change. */
  block: Buffer | undefined = undefined;
  /**
   * Undefined for a retired leaf, which is not (or no longer) part of the live index, only of snapshots: it keeps no
   * derived data and moves no bytes.
   */
  #memory: StorageMemory | undefined;
  /** The block is a second copy of bytes that are a store's, or will be one when the leaf is listed again soon. */
  #shared = false;
  #values: LeafValues | undefined = undefined;
  /** Items changed since they were last laid into one block. */
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
   * Whether a block is there, or is worth making: a copy of what a store has in memory anyway is, when the leaf was
   * listed just before.
   */
  get blockWorth(): boolean {
    if (this.block !== undefined || this.#memory?.listBlocks.includes(this)) return true;
    return !this.items.some((item) => item.shared);
  }

  /** To be called by a list that does without a block: the next one soon after gets one. */
  listed(): void {
    if (this.#memory === undefined) return;
    this.#shared = true;
    this.#memory.listBlocks.touch(this, 0);
  }

  /**
   * The leaf's block, built when needed; undefined when it would be too big or an item is corrupt. A retired leaf keeps
   * none.
   */
  blockBytes(): Buffer | undefined {
    if (this.block !== undefined) {
      if (this.#shared) this.#memory?.listBlocks.touch(this, this.block.length);
      return this.block;
    }
    let length = 0;
    for (const item of this.items) {
      // Its neighbours can be listed all the same.
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

  /** Where the items with the pinned value are, in order; undefined while finding that out would not pay. */
  pinned(pin: Pin): readonly number[] | undefined {
    if (this.#memory === undefined) return undefined;
    this.#values ??= new LeafValues(this.#memory.selectorIndexes);
    return this.#values.positions(pin, this.items);
  }

  /** Lets go of the block, where no item's bytes lie in it alone. */
  drop(): void {
    if (this.items.every((item) => item.shared)) this.block = undefined;
  }

  /** To be called when an object came that was not there: its bytes wait where they are until the leaf is full. */
  grown(): void {
    this.#outdate();
  }

  /** The leaf leaves the live index. */
  retire(): void {
    this.#outdate();
    this.#memory = undefined;
  }

  /** Block and values are not what the items are any more, or nobody is to keep them. */
  #outdate(): void {
    this.block = undefined;
    this.#values?.drop();
    if (this.#shared) this.#memory?.listBlocks.forget(this);
    this.#shared = false;
  }

  /**
   * To be called after every other change, with the object that came, if one did. Bytes that are a store's stay where
   * they are. When half of the items lie scattered, all are laid together again: this frees the rest of the old block
   * and the slabs in which small buffers come, at a constant cost per change.
   */
  changed(object?: StoredObject): void {
    this.#outdate();
    if (object?.shared) return;
    this.scattered++;
    if (this.scattered > 16 && this.scattered * 2 > this.items.length) this.layOut();
  }

  /** Lays all items together, if they can be. */
  layOut(): void {
    this.scattered = 0;
    if (!this.items.some((item) => item.shared)) this.blockBytes();
  }
}

export class Inner {
  readonly owner: Owner;
  /** A lower bound of the keys of each child, as ordered forms; the first is never looked at. */
  readonly bounds: string[];
  readonly children: IndexNode[];
  size: number;

  constructor(owner: Owner, bounds: string[], children: IndexNode[], size: number) {
    this.owner = owner;
    this.bounds = bounds;
    this.children = children;
    this.size = size;
  }

  /** Index of the child that has or would have the key. */
  childOf(ordered: string): number {
    const { bounds } = this;
    let low = 1;
    let high = bounds.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((bounds[middle] as string) <= ordered) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}

/** Index of the first item whose key is not below `ordered`. `exotic`: keys may not be their own ordered forms. */
export function lowerBound(items: readonly StoredObject[], ordered: string, exotic: boolean): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const { key } = items[middle] as StoredObject;
    if ((exotic ? orderedForm(key) : key) < ordered) low = middle + 1;
    else high = middle;
  }
  return low;
}

type Positions = ReadonlyMap<string, readonly number[]>;

const none: readonly number[] = [];
/** Roughly what a map of positions takes, for each item and for each value, bytes. */
const itemBytes = 8;
const valueBytes = 96;

/**
 * Where in a leaf the objects with each value of an attribute are, so that a list which selects by one value looks at
 * few objects. An attribute that is asked for once is not worth it; it is found out when it is asked for again while
 * the leaf is as it was.
 */
export class LeafValues implements Droppable {
  readonly #budget: UsageBudget;
  /** Undefined for an attribute that was asked for once. */
  readonly #attributes = new Map<string, Positions | undefined>();
  #bytes = 0;

  constructor(budget: UsageBudget) {
    this.#budget = budget;
  }

  /**
   * Positions of the items that have the value, in order; undefined when all have to be looked at. The items must all
   * be readable.
   */
  positions({ attribute, value, read }: Pin, items: readonly StoredObject[]): readonly number[] | undefined {
    let found = this.#attributes.get(attribute);
    if (found === undefined && this.#attributes.has(attribute)) {
      const made = positionsByValue(items, read);
      this.#bytes += items.length * itemBytes + made.size * valueBytes;
      found = made;
    }
    this.#attributes.set(attribute, found);
    this.#budget.touch(this, this.#bytes);
    return found && (found.get(value) ?? none);
  }

  /** To be called when the items change, too. */
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
    const known = positions.get(value);
    if (known === undefined) positions.set(value, [position]);
    else known.push(position);
  });
  return positions;
}
