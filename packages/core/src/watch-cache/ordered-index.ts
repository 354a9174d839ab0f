import type { StorageMemory } from '../storage/storage-memory.ts';
import type { Key } from '../storage/store.ts';
import { orderedForm } from '../storage/store-helpers.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import { KeptSelections, Leaf, leafCapacity, type Owner } from './leaf.ts';

const innerCapacity = 64;

type IndexNode = Leaf | Inner;

class Inner {
  readonly owner: Owner;
  /** A lower bound of the keys of each child, as ordered forms; the first is never read. */
  readonly bounds: string[];
  readonly children: IndexNode[];
  size: number;
  /** Kept selections by predicate; present only for nodes of a snapshot, because these do not change. */
  selections: KeptSelections | undefined = undefined;

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

/** Index of the first item whose key is not below `ordered`. `exotic`: keys may differ from their ordered forms. */
function lowerBound(items: readonly StoredObject[], ordered: string, exotic: boolean): number {
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

/** Consecutive items of one leaf: `[from, to)`. */
export interface LeafSlice {
  readonly leaf: Leaf;
  readonly from: number;
  readonly to: number;
}

/** Consecutive leaves of one node: the items `[from, to)` of the node. */
export interface IndexPart {
  readonly size: number;
  readonly slices: Iterable<LeafSlice>;
  /** Set when the part is the whole of a node with several leaves. */
  readonly selections: KeptSelections | undefined;
}

/** One immutable state of an ordered index. The rank of an item is the number of items with lower keys. */
export class IndexSnapshot {
  readonly root: IndexNode;
  /** Whether some key differs from its ordered form, so that comparisons must compute the form. */
  readonly exotic: boolean;
  /** Number of corrupt objects. */
  readonly corrupt: number;
  /** Undefined for a state of a scratch index, which keeps no derived data. */
  readonly #memory: StorageMemory | undefined;

  constructor(root: IndexNode, exotic: boolean, corrupt: number, memory: StorageMemory | undefined) {
    this.root = root;
    this.exotic = exotic;
    this.corrupt = corrupt;
    this.#memory = memory;
  }

  get size(): number {
    return this.root.size;
  }

  get(key: Key): StoredObject | undefined {
    return findItem(this.root, key, this.exotic);
  }

  /** Number of items whose key is below `key`. No item needs to have that key. */
  rank(key: Key): number {
    const ordered = orderedForm(key);
    let node = this.root;
    let rank = 0;
    while (node instanceof Inner) {
      const child = node.childOf(ordered);
      for (let i = 0; i < child; i++) rank += (node.children[i] as IndexNode).size;
      node = node.children[child] as IndexNode;
    }
    return rank + lowerBound(node.items, ordered, this.exotic);
  }

  /** Number of items whose key is not above `key`. */
  rankAfter(key: Key): number {
    return this.rank(key) + (this.get(key) === undefined ? 0 : 1);
  }

  /** The items with ranks in `[from, to)`, leaf by leaf. */
  *slices(from: number, to: number): Generator<LeafSlice, void, undefined> {
    if (from < to) yield* slicesOf(this.root, from, Math.min(to, this.size));
  }

  /** The items with ranks in `[from, to)`, by the lowest nodes that have several leaves. */
  *parts(from: number, to: number): Generator<IndexPart, void, undefined> {
    if (from >= to) return;
    for (const range of rangesOf(this.root, from, Math.min(to, this.size), isLowest)) {
      const { node } = range;
      const size = range.to - range.from;
      const memory = node instanceof Inner && size === node.size ? this.#memory : undefined;
      if (memory !== undefined) (node as Inner).selections ??= new KeptSelections(memory.selectorIndexes);
      const selections = memory && (node as Inner).selections;
      yield { size, slices: slicesOf(node, range.from, range.to), selections };
    }
  }

  /** The items with ranks in `[from, to)`. */
  *items(from = 0, to = this.size): Generator<StoredObject, void, undefined> {
    for (const slice of this.slices(from, to)) {
      for (let i = slice.from; i < slice.to; i++) yield slice.leaf.items[i] as StoredObject;
    }
  }
}

export function findItem(root: IndexNode, key: Key, exotic: boolean): StoredObject | undefined {
  const ordered = orderedForm(key);
  let node = root;
  while (node instanceof Inner) node = node.children[node.childOf(ordered)] as IndexNode;
  const item = node.items[lowerBound(node.items, ordered, exotic)];
  return item?.key === key ? item : undefined;
}

const isLeaf = (node: IndexNode): boolean => node instanceof Leaf;
const isLowest = (node: IndexNode): boolean => node instanceof Leaf || node.children[0] instanceof Leaf;

function* slicesOf(node: IndexNode, from: number, to: number): Generator<LeafSlice, void, undefined> {
  for (const range of rangesOf(node, from, to, isLeaf))
    yield { leaf: range.node as Leaf, from: range.from, to: range.to };
}

interface NodeRange {
  readonly node: IndexNode;
  readonly from: number;
  readonly to: number;
}

/**
 * Splits the items `[from, to)` of a node into ranges. Each range belongs to the highest node for which `isWanted` is
 * true, or to a leaf.
 */
function* rangesOf(
  node: IndexNode,
  from: number,
  to: number,
  isWanted: (node: IndexNode) => boolean,
): Generator<NodeRange, void, undefined> {
  if (!(node instanceof Inner) || isWanted(node)) {
    yield { node, from, to };
    return;
  }
  let start = 0;
  for (const child of node.children) {
    const end = start + child.size;
    if (child.size > 0 && end > from && start < to)
      yield* rangesOf(child, Math.max(from - start, 0), Math.min(to, end) - start, isWanted);
    if (end >= to) return;
    start = end;
  }
}

/**
 * Objects in key order: a B+tree with copy on write. A snapshot costs constant time; the first change of each node
 * after it costs a copy of that node.
 *
 * The live index keeps the bytes of neighbouring objects in one buffer (see {@link Leaf}). A `scratch` index, created
 * from a snapshot to compute a past state, shares the nodes of the live index and moves no bytes.
 */
export class OrderedIndex {
  #root: IndexNode;
  #owner: Owner = {};
  #exotic: boolean;
  #corrupt: number;
  /** Undefined for a scratch index. */
  readonly #memory: StorageMemory | undefined;
  #previous: StoredObject | undefined;
  #sibling: { readonly node: IndexNode; readonly bound: string } | undefined;

  private constructor(memory: StorageMemory | undefined, base?: IndexSnapshot) {
    this.#memory = memory;
    this.#root = base?.root ?? new Leaf(this.#owner, [], memory);
    this.#exotic = base?.exotic ?? false;
    this.#corrupt = base?.corrupt ?? 0;
  }

  /** An empty live index. */
  static live(memory: StorageMemory): OrderedIndex {
    return new OrderedIndex(memory);
  }

  /** An index that begins as the snapshot and leaves the live index unchanged. */
  static scratch(base: IndexSnapshot): OrderedIndex {
    return new OrderedIndex(undefined, base);
  }

  get size(): number {
    return this.#root.size;
  }

  get(key: Key): StoredObject | undefined {
    return findItem(this.#root, key, this.#exotic);
  }

  /** The present state; constant time. */
  snapshot(): IndexSnapshot {
    this.#owner = {};
    return new IndexSnapshot(this.#root, this.#exotic, this.#corrupt, this.#memory);
  }

  /** Stores the object under its key; returns the previous object. */
  set(object: StoredObject): StoredObject | undefined {
    const ordered = orderedForm(object.key);
    if (ordered !== object.key) this.#exotic = true;
    if (object.corrupt) this.#corrupt++;
    this.#previous = undefined;
    this.#root = this.#put(this.#root, ordered, object);
    const sibling = this.#sibling;
    if (sibling !== undefined) {
      this.#sibling = undefined;
      const children = [this.#root, sibling.node];
      this.#root = new Inner(this.#owner, ['', sibling.bound], children, sizeOf(children));
    }
    return this.#replaced();
  }

  /** As {@link set}, for many objects. */
  load(objects: Iterable<StoredObject>): void {
    for (const object of objects) this.set(object);
  }

  /** Removes the key; returns the previous object. */
  delete(key: Key): StoredObject | undefined {
    this.#previous = this.get(key);
    if (this.#previous === undefined) return undefined;
    this.#root = this.#remove(this.#root, orderedForm(key));
    while (this.#root instanceof Inner && this.#root.children.length === 1)
      this.#root = this.#root.children[0] as IndexNode;
    return this.#replaced();
  }

  /** The object that was just replaced or removed. It must not keep the bytes of its neighbours in memory. */
  #replaced(): StoredObject | undefined {
    const previous = this.#previous;
    this.#previous = undefined;
    if (previous?.corrupt) this.#corrupt--;
    if (this.#memory !== undefined) previous?.detach();
    return previous;
  }

  #put(node: IndexNode, ordered: string, object: StoredObject): IndexNode {
    return node instanceof Inner ? this.#putBelow(node, ordered, object) : this.#putInLeaf(node, ordered, object);
  }

  #putInLeaf(node: Leaf, ordered: string, object: StoredObject): Leaf {
    const at = lowerBound(node.items, ordered, this.#exotic);
    const leaf = this.#ownLeaf(node);
    const { items } = leaf;
    const found = items[at];
    if (found?.key === object.key) {
      this.#previous = found;
      items[at] = object;
      if (this.#memory !== undefined) leaf.changed(object);
      return leaf;
    }
    items.splice(at, 0, object);
    leaf.grown();
    if (items.length > leafCapacity) this.#splitLeaf(leaf, at === items.length - 1);
    return leaf;
  }

  #putBelow(node: Inner, ordered: string, object: StoredObject): Inner {
    const at = node.childOf(ordered);
    const child = this.#put(node.children[at] as IndexNode, ordered, object);
    const inner = this.#ownInner(node);
    inner.children[at] = child;
    if (this.#previous === undefined) inner.size++;
    const sibling = this.#sibling;
    if (sibling !== undefined) {
      this.#sibling = undefined;
      inner.children.splice(at + 1, 0, sibling.node);
      inner.bounds.splice(at + 1, 0, sibling.bound);
      if (inner.children.length > innerCapacity) this.#splitInner(inner, at + 2 === inner.children.length);
    }
    return inner;
  }

  /** A split at the end (loading in key order, ascending names) leaves a full leaf; other splits divide it evenly. */
  #splitLeaf(leaf: Leaf, atEnd: boolean): void {
    const right = leaf.items.splice(atEnd ? leaf.items.length - 1 : leaf.items.length >>> 1);
    if (this.#memory !== undefined) leaf.layOut();
    this.#sibling = {
      node: new Leaf(this.#owner, right, this.#memory),
      bound: orderedForm((right[0] as StoredObject).key),
    };
  }

  #splitInner(inner: Inner, atEnd: boolean): void {
    const at = atEnd ? inner.children.length - 2 : inner.children.length >>> 1;
    const children = inner.children.splice(at);
    const bounds = inner.bounds.splice(at);
    const size = sizeOf(children);
    inner.size -= size;
    this.#sibling = { node: new Inner(this.#owner, bounds, children, size), bound: bounds[0] as string };
  }

  #remove(node: IndexNode, ordered: string): IndexNode {
    if (!(node instanceof Inner)) {
      const leaf = this.#ownLeaf(node);
      leaf.items.splice(lowerBound(leaf.items, ordered, this.#exotic), 1);
      if (this.#memory !== undefined) leaf.changed();
      return leaf;
    }
    const at = node.childOf(ordered);
    const child = this.#remove(node.children[at] as IndexNode, ordered);
    const inner = this.#ownInner(node);
    inner.children[at] = child;
    inner.size--;
    if (isSparse(child)) this.#merge(inner, at);
    return inner;
  }

  /** Joins a child that has become small with a neighbour, if both fill at most three quarters of one node. */
  #merge(inner: Inner, at: number): void {
    const left = at > 0 ? at - 1 : 0;
    const a = inner.children[left];
    const b = inner.children[left + 1];
    if (a === undefined || b === undefined) return;
    let joined: IndexNode;
    if (a instanceof Inner && b instanceof Inner) {
      if (a.children.length + b.children.length > innerCapacity * 0.75) return;
      this.#retire(a);
      this.#retire(b);
      const bounds = [...a.bounds, inner.bounds[left + 1] as string, ...b.bounds.slice(1)];
      joined = new Inner(this.#owner, bounds, [...a.children, ...b.children], a.size + b.size);
    } else if (a instanceof Leaf && b instanceof Leaf) {
      const empty = a.items.length === 0 || b.items.length === 0;
      if (a.items.length + b.items.length > leafCapacity * 0.75 && !empty) return;
      this.#retire(a);
      this.#retire(b);
      joined = new Leaf(this.#owner, [...a.items, ...b.items], this.#memory);
    } else return;
    inner.children.splice(left, 2, joined);
    inner.bounds.splice(left + 1, 1);
  }

  #ownLeaf(leaf: Leaf): Leaf {
    if (leaf.owner === this.#owner) return leaf;
    this.#retire(leaf);
    const own = new Leaf(this.#owner, leaf.items.slice(), this.#memory);
    own.scattered = leaf.scattered;
    return own;
  }

  #retire(node: IndexNode): void {
    if (this.#memory === undefined) return;
    if (node instanceof Inner) node.selections?.forget();
    else node.retire();
  }

  #ownInner(inner: Inner): Inner {
    if (inner.owner === this.#owner) return inner;
    this.#retire(inner);
    return new Inner(this.#owner, inner.bounds.slice(), inner.children.slice(), inner.size);
  }
}

function sizeOf(nodes: readonly IndexNode[]): number {
  return nodes.reduce((sum, node) => sum + node.size, 0);
}

function isSparse(node: IndexNode): boolean {
  return node instanceof Inner ? node.children.length < innerCapacity / 4 : node.items.length < leafCapacity / 4;
}
