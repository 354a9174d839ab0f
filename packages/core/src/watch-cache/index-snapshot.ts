import type { Key } from '../storage/store.ts';
import { orderedForm } from '../storage/store-checks.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import { type IndexNode, Inner, type Leaf, lowerBound } from './index-node.ts';

/** Consecutive items of one leaf: `[from, to)`. */
export interface LeafSlice {
  readonly leaf: Leaf;
  readonly from: number;
  readonly to: number;
}

/** One immutable state of an ordered index. The rank of an item is the number of items with lower keys. */
export class IndexSnapshot {
  readonly root: IndexNode;
  /** Whether some key differs from its ordered form, so that comparisons must compute the form. */
  readonly exotic: boolean;
  /** Number of corrupt objects. */
  readonly corrupt: number;

  constructor(root: IndexNode, exotic: boolean, corrupt: number) {
    this.root = root;
    this.exotic = exotic;
    this.corrupt = corrupt;
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

function* slicesOf(node: IndexNode, from: number, to: number): Generator<LeafSlice, void, undefined> {
  if (!(node instanceof Inner)) {
    yield { leaf: node, from, to };
    return;
  }
  let start = 0;
  for (const child of node.children) {
    const end = start + child.size;
    if (child.size > 0 && end > from && start < to)
      yield* slicesOf(child, Math.max(from - start, 0), Math.min(to, end) - start);
    if (end >= to) return;
    start = end;
  }
}
