import { WireReader } from '@keelson/protobuf-wire';

interface CachedItem<T> {
  readonly state: number;
  readonly length: number;
  readonly item: T;
}

interface CachedReply<T> {
  readonly reply: Buffer;
  readonly items: readonly T[];
}

const maxReplies = 16;
const maxItems = 8192;

interface Listed {
  readonly id: string;
  readonly createdAt: number;
}

/**
 * Decodes lists that are requested repeatedly and rarely change. Daemons write items and their labels in varying order,
 * so equal lists seldom have equal bytes. Only the state of a sandbox or container can change: an item with the id, the
 * state and the size of a cached item is not decoded again. For an unchanged list the same array is returned.
 */
export class ListCache<T extends Listed> {
  readonly #stateField: number;
  readonly #decode: (bytes: Buffer) => T;
  readonly #items = new Map<string, CachedItem<T>>();
  readonly #replies = new Map<string, CachedReply<T>>();

  /** `stateField` is the field number of the state in an item; that of the id is 1. */
  constructor(stateField: number, decode: (bytes: Buffer) => T) {
    this.#stateField = stateField;
    this.#decode = decode;
  }

  /** The items of a reply, newest first. `request` identifies the list. */
  read(request: Buffer, reply: Buffer): readonly T[] {
    const key = request.toString('latin1');
    const previous = this.#replies.get(key);
    if (previous?.reply.equals(reply)) return previous.items;
    const items = this.#decodeItems(reply);
    items.sort((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? -1 : 1));
    const unchanged =
      previous?.items.length === items.length && items.every((item, position) => item === previous.items[position]);
    const cached = { reply, items: unchanged ? previous.items : items };
    this.#store(key, cached);
    // The unfiltered list contains every existing item, so all other items can be evicted.
    if (request.length === 0 && this.#items.size > items.length) this.#retainOnly(items);
    return cached.items;
  }

  #decodeItems(reply: Buffer): T[] {
    const items: T[] = [];
    const reader = new WireReader(reply);
    for (let field = reader.next(); field !== 0; field = reader.next()) {
      if (field === 1) items.push(this.#item(reader.bytes()));
      else reader.skip();
    }
    return items;
  }

  #item(bytes: Buffer): T {
    let id = '';
    let state = 0;
    const reader = new WireReader(bytes);
    for (let field = reader.next(); field !== 0; field = reader.next()) {
      if (field === 1) id = reader.text();
      else if (field === this.#stateField) state = reader.integer();
      else reader.skip();
    }
    const cached = this.#items.get(id);
    if (cached?.state === state && cached.length === bytes.length) return cached.item;
    const item = this.#decode(bytes);
    if (this.#items.size >= maxItems) this.#items.clear();
    this.#items.set(id, { state, length: bytes.length, item });
    return item;
  }

  #store(key: string, cached: CachedReply<T>): void {
    this.#replies.delete(key);
    this.#replies.set(key, cached);
    const [oldest] = this.#replies.keys();
    if (this.#replies.size > maxReplies && oldest !== undefined) this.#replies.delete(oldest);
  }

  #retainOnly(items: readonly T[]): void {
    const ids = new Set(items.map(({ id }) => id));
    for (const id of this.#items.keys()) if (!ids.has(id)) this.#items.delete(id);
  }
}
