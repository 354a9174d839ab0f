import { WireReader } from '@keelson/protobuf-wire';

interface Known<T> {
  readonly state: number;
  readonly length: number;
  readonly item: T;
}

interface Answer<T> {
  readonly reply: Buffer;
  readonly items: readonly T[];
}

const answersKept = 16;
const itemsKept = 8192;

interface Listed {
  readonly id: string;
  readonly createdAt: number;
}

/**
 * Decodes lists that are asked for again and again and have hardly changed. Daemons write items, and the labels within
 * them, in another order each time, so equal lists seldom have equal bytes. But of a sandbox or container nothing
 * changes except its state: an item with the id, the state and the size of one that is known is that one. A list of
 * known items that has not changed is the same array.
 */
export class ListCache<T extends Listed> {
  readonly #stateField: number;
  readonly #decode: (bytes: Buffer) => T;
  readonly #known = new Map<string, Known<T>>();
  readonly #answers = new Map<string, Answer<T>>();

  /** `stateField` is the number of the state in an item; the id is 1. */
  constructor(stateField: number, decode: (bytes: Buffer) => T) {
    this.#stateField = stateField;
    this.#decode = decode;
  }

  /** The items of a reply, newest first. `request` tells the lists apart. */
  read(request: Buffer, reply: Buffer): readonly T[] {
    const key = request.toString('latin1');
    const previous = this.#answers.get(key);
    if (previous?.reply.equals(reply)) return previous.items;
    const items = this.#itemsOf(reply);
    items.sort((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? -1 : 1));
    const unchanged =
      previous?.items.length === items.length && items.every((item, position) => item === previous.items[position]);
    const answer = { reply, items: unchanged ? previous.items : items };
    this.#keep(key, answer);
    // The list of everything says which items there are at all.
    if (request.length === 0 && this.#known.size > items.length) this.#forgetAllBut(items);
    return answer.items;
  }

  #itemsOf(reply: Buffer): T[] {
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
    const known = this.#known.get(id);
    if (known?.state === state && known.length === bytes.length) return known.item;
    const item = this.#decode(bytes);
    if (this.#known.size >= itemsKept) this.#known.clear();
    this.#known.set(id, { state, length: bytes.length, item });
    return item;
  }

  #keep(key: string, answer: Answer<T>): void {
    this.#answers.delete(key);
    this.#answers.set(key, answer);
    const [oldest] = this.#answers.keys();
    if (this.#answers.size > answersKept && oldest !== undefined) this.#answers.delete(oldest);
  }

  #forgetAllBut(items: readonly T[]): void {
    const ids = new Set(items.map(({ id }) => id));
    for (const id of this.#known.keys()) if (!ids.has(id)) this.#known.delete(id);
  }
}
