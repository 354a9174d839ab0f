/** Maximum number of entries or children of a node; a split halves it. */
const fanOut = 64;
/** A node of at most this size is merged with a neighbour if both fit into one. */
const sparse = 12;

interface Leaf<V> {
  readonly leaf: true;
  keys: string[];
  values: V[];
}

/** `keys[i]` is a lower bound of everything under `children[i + 1]` and above everything under `children[i]`. */
interface Branch<V> {
  readonly leaf: false;
  keys: string[];
  children: Node<V>[];
}

type Node<V> = Leaf<V> | Branch<V>;

/** Returns the first index whose key is not below `key`. */
function lowerBound(keys: readonly string[], key: string): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((keys[middle] as string) < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns the index of the child that contains the position of `key`. */
function childIndex(keys: readonly string[], key: string): number {
  const index = lowerBound(keys, key);
  return keys[index] === key ? index + 1 : index;
}

/** A B+tree from strings, in the order of their code units, to values. Every single-key operation is O(log n). */
export class OrderedMap<V> {
  #root: Node<V> = { leaf: true, keys: [], values: [] };
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(key: string): V | undefined {
    let node = this.#root;
    while (!node.leaf) node = node.children[childIndex(node.keys, key)] as Node<V>;
    const index = lowerBound(node.keys, key);
    return node.keys[index] === key ? node.values[index] : undefined;
  }

  set(key: string, value: V): void {
    const split = this.#insert(this.#root, key, value);
    if (split !== undefined) this.#root = { leaf: false, keys: [split.key], children: [this.#root, split.right] };
  }

  delete(key: string): boolean {
    const found = this.#remove(this.#root, key);
    const root = this.#root;
    if (!root.leaf && root.children.length === 1) this.#root = root.children[0] as Node<V>;
    return found;
  }

  /**
   * Visits values whose key is in `[start, end)`, or `(start, end)`, in order until `visit` returns false. The map must
   * not be changed during the visit.
   */
  scan(start: string, startExclusive: boolean, end: string, visit: (value: V, key: string) => boolean): void {
    this.#scan(this.#root, start, startExclusive, end, visit);
  }

  #scan(
    node: Node<V>,
    start: string,
    exclusive: boolean,
    end: string,
    visit: (value: V, key: string) => boolean,
  ): boolean {
    if (!node.leaf) {
      for (let i = childIndex(node.keys, start); i < node.children.length; i++) {
        if (i > 0 && (node.keys[i - 1] as string) >= end) return false;
        if (!this.#scan(node.children[i] as Node<V>, start, exclusive, end, visit)) return false;
      }
      return true;
    }
    let i = lowerBound(node.keys, start);
    if (exclusive && node.keys[i] === start) i++;
    for (; i < node.keys.length; i++) {
      const key = node.keys[i] as string;
      if (key >= end || !visit(node.values[i] as V, key)) return false;
    }
    return true;
  }

  #insert(node: Node<V>, key: string, value: V): { key: string; right: Node<V> } | undefined {
    if (node.leaf) {
      const index = lowerBound(node.keys, key);
      if (node.keys[index] === key) {
        node.values[index] = value;
        return undefined;
      }
      node.keys.splice(index, 0, key);
      node.values.splice(index, 0, value);
      this.#size++;
      if (node.keys.length <= fanOut) return undefined;
      // Keys are often appended in order; an uneven split keeps the left leaf full.
      const at = index === node.keys.length - 1 ? fanOut : fanOut / 2;
      const right: Leaf<V> = { leaf: true, keys: node.keys.splice(at), values: node.values.splice(at) };
      return { key: right.keys[0] as string, right };
    }
    const index = childIndex(node.keys, key);
    const split = this.#insert(node.children[index] as Node<V>, key, value);
    if (split === undefined) return undefined;
    node.keys.splice(index, 0, split.key);
    node.children.splice(index + 1, 0, split.right);
    if (node.children.length <= fanOut) return undefined;
    const at = fanOut / 2;
    const right: Branch<V> = { leaf: false, keys: node.keys.splice(at), children: node.children.splice(at) };
    return { key: node.keys.pop() as string, right };
  }

  #remove(node: Node<V>, key: string): boolean {
    if (node.leaf) {
      const index = lowerBound(node.keys, key);
      if (node.keys[index] !== key) return false;
      node.keys.splice(index, 1);
      node.values.splice(index, 1);
      this.#size--;
      return true;
    }
    const index = childIndex(node.keys, key);
    const child = node.children[index] as Node<V>;
    if (!this.#remove(child, key)) return false;
    if (weight(child) < sparse && node.children.length > 1) this.#merge(node, index === 0 ? 0 : index - 1);
    return true;
  }

  /** Joins the children `left` and `left + 1` when they fit into one. */
  #merge(parent: Branch<V>, left: number): void {
    const a = parent.children[left] as Node<V>;
    const b = parent.children[left + 1] as Node<V>;
    const fits = weight(a) + weight(b) <= fanOut - sparse;
    // An empty node is always removed: scans tolerate empty leaves, but these would accumulate.
    if (!fits && weight(a) > 0 && weight(b) > 0) return;
    const separator = parent.keys[left] as string;
    if (a.leaf && b.leaf) {
      a.keys.push(...b.keys);
      a.values.push(...b.values);
    } else if (!a.leaf && !b.leaf) {
      a.keys.push(separator, ...b.keys);
      a.children.push(...b.children);
    }
    parent.keys.splice(left, 1);
    parent.children.splice(left + 1, 1);
  }
}

function weight(node: Node<unknown>): number {
  return node.leaf ? node.keys.length : node.children.length;
}
