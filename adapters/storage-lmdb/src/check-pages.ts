import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';
import { endianness } from 'node:os';

/*
 * The format of the data file, version 2 (lmdb: libraries/liblmdb/mdb.c). All integers have the byte order of the
 * machine.
 *
 * - page: number u64, transaction u64, pad u16, flags u16, lower u16, upper u16 (overflow pages: count u32), then u16
 *   offsets of nodes
 * - meta: page header, magic u32, version u32, address u64, map size u64, tree of free pages, main tree, last page u64,
 *   transaction u64
 * - tree: pad u32 (page size), flags u16, depth u16, branch pages u64, leaf pages u64, overflow pages u64, entries u64,
 *   root u64
 * - node: size low u16, size high u16, flags u16, key size u16, key, data; in a branch page the first three fields are
 *   the number of a page
 */
const headerBytes = 24;
const nodeBytes = 8;
const treeBytes = 48;
/** Values of the main tree begin with a version; the driver subtracts its size without a check. */
const versionBytes = 8;
const magic = 0xbeefc0de;
const dataVersion = 2;
const noRoot = 2n ** 64n - 1n;
const flag = { branch: 1, leaf: 2, overflow: 4, meta: 8 } as const;
const nodeFlag = { overflow: 1, tree: 2 } as const;
/**
 * Flag of a tree whose keys are integers. Only the tree of free pages has it; no tree has another flag for the form of
 * keys or values.
 */
const integerKeys = 8;
/** Flags that the driver sets in the trees of a meta page and that do not concern their form. */
const driverFlags = 0x1100;
/** The driver reserves addresses for the whole map; a larger one cannot exist on today's processors. */
const maxMapBytes = 2n ** 47n;
/** Pages checked between two turns of the event loop. */
const pagesPerTurn = 512;
const maxDamages = 20;
const mainTree = 'the main tree';

interface Tree {
  readonly name: string;
  readonly flags: number;
  readonly depth: number;
  readonly branchPages: number;
  readonly leafPages: number;
  readonly overflowPages: number;
  readonly entries: number;
  readonly root: bigint;
  /** Keys of the tree of free pages are numbers, all others bytes. */
  readonly ordered: boolean;
}

/** Numbers of pages and entries that were counted in a tree. */
interface Counts {
  branchPages: number;
  leafPages: number;
  overflowPages: number;
  entries: number;
}

/**
 * Walks every tree of a data file and returns a description of each damage: meta pages with impossible values, pages
 * outside the file, pages with the wrong number or kind, impossible flags, nodes outside their page, keys out of
 * order, pages used twice, and numbers of pages and entries that differ from those that the tree records. The driver
 * checks none of this: it ends the process on a missing page, and returns fewer objects where a page is damaged.
 *
 * Values are not checked here; each record has a checksum. Reads the file without the driver, and yields to the event
 * loop between groups of pages.
 *
 * @param throwIfCancelled called before each page; an error that it throws ends the check
 */
export async function checkPages(file: string, throwIfCancelled: () => void = () => {}): Promise<string[]> {
  if (!existsSync(file)) return [];
  const descriptor = openSync(file, 'r');
  try {
    const size = fstatSync(descriptor).size;
    // A crash during creation leaves an empty file, which counts as a new store.
    if (size === 0) return [];
    const head = Buffer.alloc(headerBytes + 8);
    if (readSync(descriptor, head) < head.byteLength || read32(head, headerBytes) !== magic)
      return ['it is not a database'];
    const version = read32(head, headerBytes + 4);
    if (version !== dataVersion) return [`it has data format ${version}, the driver reads format ${dataVersion}`];
    // The following checks read numbers as little-endian, so that on big-endian machines only the magic number and the
    // version of the format are checked.
    if (endianness() !== 'LE') return [];
    return await new PageCheck(descriptor, size, throwIfCancelled).run();
  } finally {
    closeSync(descriptor);
  }
}

function read32(bytes: Buffer, offset: number): number {
  return endianness() === 'LE' ? bytes.readUInt32LE(offset) : bytes.readUInt32BE(offset);
}

class PageCheck {
  readonly #descriptor: number;
  readonly #size: number;
  readonly #throwIfCancelled: () => void;
  readonly #damages: string[] = [];
  #pageSize = 4096;
  #lastPage = 0;
  #used = new Uint8Array(0);
  #pages = 0;

  constructor(descriptor: number, size: number, throwIfCancelled: () => void) {
    this.#descriptor = descriptor;
    this.#size = size;
    this.#throwIfCancelled = throwIfCancelled;
  }

  async run(): Promise<string[]> {
    const meta = this.#newestMeta();
    if (meta === undefined) return this.#damages;
    this.#used = new Uint8Array(Math.ceil(this.#size / this.#pageSize / 8) + 1);
    await this.#walk(treeAt(meta, 48, 'the tree of free pages', false));
    for (const tree of await this.#walk(treeAt(meta, 96, mainTree, true))) await this.#walk(tree);
    return this.#damages;
  }

  #newestMeta(): Buffer | undefined {
    const first = this.#read(0, 4096);
    if (first === undefined) {
      this.#report(`the file ends at byte ${this.#size}, within its first page`);
      return undefined;
    }
    this.#pageSize = first.readUInt32LE(48);
    if (this.#pageSize < 256 || this.#pageSize > 65536 || (this.#pageSize & (this.#pageSize - 1)) !== 0) {
      this.#report(`page 0: the page size ${this.#pageSize} is impossible`);
      return undefined;
    }
    const [a, b] = [0, 1].map((page) => this.#metaPage(page));
    if (a === undefined || b === undefined) return undefined;
    // Each transaction writes the meta page that the transaction before it did not write.
    const distance = b.readBigUInt64LE(152) - a.readBigUInt64LE(152);
    if (distance < -1n || distance > 1n) {
      this.#report('pages 0 and 1: the meta pages are not of consecutive transactions');
      return undefined;
    }
    const newest = distance > 0n ? b : a;
    this.#lastPage = Number(newest.readBigUInt64LE(144));
    return newest;
  }

  #metaPage(page: number): Buffer | undefined {
    const meta = this.#read(page * this.#pageSize, 176);
    if (meta === undefined || !this.#isMeta(meta, page)) {
      this.#report(`page ${page}: no valid meta page`);
      return undefined;
    }
    // Every transaction writes the root of the main tree. The pages of the last two transactions are not used again.
    const { root } = treeAt(meta, 96, mainTree, true);
    if (root === noRoot) return meta;
    if (this.#read(Number(root) * this.#pageSize, headerBytes)?.readBigUInt64LE(8) === meta.readBigUInt64LE(152))
      return meta;
    this.#report(`page ${page}: its transaction is not that of page ${root}, the root of the main tree`);
    return undefined;
  }

  #isMeta(meta: Buffer, page: number): boolean {
    const mapBytes = meta.readBigUInt64LE(40);
    const transaction = meta.readBigUInt64LE(152);
    return (
      meta.readBigUInt64LE(0) === BigInt(page) &&
      meta.readUInt16LE(18) === flag.meta &&
      meta.readUInt32LE(24) === magic &&
      meta.readUInt32LE(28) === dataVersion &&
      meta.readBigUInt64LE(32) === 0n &&
      mapBytes <= maxMapBytes &&
      meta.readUInt32LE(48) === this.#pageSize &&
      (meta.readUInt16LE(52) & ~driverFlags) === integerKeys &&
      (meta.readBigUInt64LE(144) + 1n) * BigInt(this.#pageSize) <= mapBytes &&
      // A new file has the transaction 0 in both pages.
      (transaction === 0n || transaction % 2n === BigInt(page))
    );
  }

  /** Checks a tree, and returns the trees whose roots are its entries. */
  async #walk(tree: Tree): Promise<Tree[]> {
    const inner: Tree[] = [];
    const counts: Counts = { branchPages: 0, leafPages: 0, overflowPages: 0, entries: 0 };
    if ((tree.flags & ~driverFlags) !== (tree.ordered ? 0 : integerKeys)) {
      this.#report(`${tree.name} has the impossible flags ${tree.flags}`);
      return [];
    }
    if (tree.root !== noRoot) {
      const before = this.#damages.length;
      const pending: { readonly page: number; readonly level: number }[] = [{ page: Number(tree.root), level: 1 }];
      for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
        if (this.#damages.length >= maxDamages) return [];
        this.#throwIfCancelled();
        if (++this.#pages % pagesPerTurn === 0) await new Promise((resolve) => setImmediate(resolve));
        const { page, level } = next;
        for (const child of this.#checkPage(tree, page, level, counts, inner))
          pending.push({ page: child, level: level + 1 });
      }
      // The counts of a tree with a damaged page differ from the recorded ones in any case and are not compared.
      if (this.#damages.length > before) return inner;
    }
    for (const key of ['branchPages', 'leafPages', 'overflowPages', 'entries'] as const) {
      if (counts[key] !== tree[key])
        this.#report(`${tree.name}: ${counts[key]} ${key} where ${tree[key]} are recorded`);
    }
    return inner;
  }

  /** Checks a page and returns the numbers of its child pages. */
  #checkPage(tree: Tree, number: number, level: number, counts: Counts, inner: Tree[]): number[] {
    const page = this.#take(tree, number, 1);
    if (page === undefined) return [];
    const at = `${tree.name}: page ${number}`;
    const kind = page.readUInt16LE(18) & 0x7f;
    const lower = page.readUInt16LE(20);
    const upper = page.readUInt16LE(22);
    const leaf = level === tree.depth;
    if (kind !== (leaf ? flag.leaf : flag.branch)) {
      this.#report(`${at} has kind ${kind} at level ${level} of ${tree.depth}`);
      return [];
    }
    if (lower % 2 !== 0 || lower > upper || upper > this.#pageSize - headerBytes) {
      this.#report(`${at} has impossible bounds`);
      return [];
    }
    if (leaf) counts.leafPages++;
    else counts.branchPages++;
    const below: number[] = [];
    let previous: Buffer | undefined;
    for (let i = 0; i < lower / 2; i++) {
      const offset = page.readUInt16LE(headerBytes + 2 * i) + headerBytes;
      const node = nodeAt(page, offset, leaf);
      if (node === undefined || offset < upper + headerBytes) {
        this.#report(`${at} has a node outside its bounds`);
        return below;
      }
      if (tree.ordered && previous !== undefined && (i > 1 || leaf) && Buffer.compare(previous, node.key) >= 0) {
        this.#report(`${at} has keys out of order`);
        return below;
      }
      previous = node.key;
      if (!leaf) {
        below.push(node.child);
        continue;
      }
      counts.entries++;
      const isTree = node.flags === nodeFlag.tree && tree.name === mainTree;
      if (node.flags !== 0 && node.flags !== nodeFlag.overflow && !isTree) {
        this.#report(`${at} has a node with the impossible flags ${node.flags}`);
        return below;
      }
      if (tree.name === mainTree && !isTree && node.size < versionBytes) {
        this.#report(`${at} has a value of ${node.size} bytes in place of a version`);
        return below;
      }
      if (node.flags === nodeFlag.overflow) this.#checkOverflow(tree, node.data, node.size, counts);
      else if (isTree) inner.push(treeAt(node.data, 0, treeName(node.key), true));
    }
    return below;
  }

  #checkOverflow(tree: Tree, data: Buffer, size: number, counts: Counts): void {
    const number = Number(data.readBigUInt64LE(0));
    const count = Number(data.readBigUInt64LE(16));
    const page = this.#take(tree, number, count);
    if (page === undefined) return;
    counts.overflowPages += count;
    if (
      (page.readUInt16LE(18) & flag.overflow) === 0 ||
      page.readUInt32LE(20) !== count ||
      size + headerBytes > count * this.#pageSize
    ) {
      this.#report(`${tree.name}: page ${number} does not contain the ${size} bytes of its value`);
    }
  }

  /** Reads the first of `count` pages. They must lie within the file, have their number, and not be in use already. */
  #take(tree: Tree, number: number, count: number): Buffer | undefined {
    const at = `${tree.name}: page ${number}`;
    if (number < 2 || count < 1 || number > this.#lastPage || (number + count) * this.#pageSize > this.#size) {
      this.#report(`${at} is beyond the end of the file at byte ${this.#size}`);
      return undefined;
    }
    for (let page = number; page < number + count; page++) {
      const bit = 1 << (page & 7);
      const byte = this.#used[page >> 3] ?? 0;
      if ((byte & bit) !== 0) {
        this.#report(`${at} is used twice`);
        return undefined;
      }
      this.#used[page >> 3] = byte | bit;
    }
    const page = this.#read(number * this.#pageSize, this.#pageSize);
    if (page?.readBigUInt64LE(0) === BigInt(number)) return page;
    this.#report(`${at} has the wrong number or cannot be read`);
    return undefined;
  }

  #read(position: number, length: number): Buffer | undefined {
    if (position + length > this.#size) return undefined;
    const bytes = Buffer.allocUnsafe(length);
    return readSync(this.#descriptor, bytes, 0, length, position) === length ? bytes : undefined;
  }

  #report(damage: string): void {
    if (this.#damages.length < maxDamages) this.#damages.push(damage);
  }
}

interface Node {
  readonly key: Buffer;
  readonly flags: number;
  /** In a leaf page: the data in the page, and the size of the value. */
  readonly data: Buffer;
  readonly size: number;
  /** In a branch page: the number of the child page. */
  readonly child: number;
}

/** Returns undefined when the node exceeds its page. */
function nodeAt(page: Buffer, offset: number, leaf: boolean): Node | undefined {
  if (offset + nodeBytes > page.byteLength) return undefined;
  const low = page.readUInt16LE(offset);
  const high = page.readUInt16LE(offset + 2);
  const flags = page.readUInt16LE(offset + 4);
  const keyEnd = offset + nodeBytes + page.readUInt16LE(offset + 6);
  const size = low + high * 2 ** 16;
  if (keyEnd > page.byteLength) return undefined;
  const key = page.subarray(offset + nodeBytes, keyEnd);
  if (!leaf) return { key, flags, data: page.subarray(keyEnd, keyEnd), size: 0, child: size + flags * 2 ** 32 };
  const stored = (flags & nodeFlag.overflow) === 0 ? size : headerBytes;
  const dataEnd = keyEnd + stored;
  if (dataEnd > page.byteLength || ((flags & nodeFlag.tree) !== 0 && stored < treeBytes)) return undefined;
  return { key, flags, data: page.subarray(keyEnd, dataEnd), size, child: 0 };
}

function treeAt(bytes: Buffer, at: number, name: string, ordered: boolean): Tree {
  const number = (offset: number) => Number(bytes.readBigUInt64LE(at + offset));
  return {
    name,
    ordered,
    flags: bytes.readUInt16LE(at + 4),
    depth: bytes.readUInt16LE(at + 6),
    branchPages: number(8),
    leafPages: number(16),
    overflowPages: number(24),
    entries: number(32),
    root: bytes.readBigUInt64LE(at + 40),
  };
}

function treeName(key: Buffer): string {
  return `table ${key.toString('utf8').replace(/\0$/, '')}`;
}
