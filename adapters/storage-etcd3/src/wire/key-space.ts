import type { Entry, Key } from '@keelson/core/storage-adapter';
import type { KeyValue } from './responses.ts';

/**
 * The keys of a store in etcd: all have a prefix that ends with a slash. Internal records of the store have names that
 * begin with U+0000, which no key may contain; they sort before all keys and are never listed or watched.
 */
export class KeySpace {
  readonly prefix: Buffer;
  /** Lower bound of all keys of users. */
  readonly first: Buffer;
  /** First key after the prefix. */
  readonly end: Buffer;
  readonly identity: Buffer;
  readonly cookie: Buffer;
  /** Key of a record that never exists. */
  readonly missing: Buffer;
  readonly #text: string;

  constructor(prefix: string) {
    this.#text = prefix;
    this.prefix = Buffer.from(prefix);
    this.first = Buffer.from(`${prefix}\u0001`);
    this.end = Buffer.from(this.prefix);
    const last = this.end.length - 1;
    this.end[last] = (this.end[last] as number) + 1;
    this.identity = Buffer.from(`${prefix}\0identity`);
    this.cookie = Buffer.from(`${prefix}\0progress`);
    this.missing = Buffer.from(`${prefix}\0missing`);
  }

  encode(key: Key): Buffer {
    return Buffer.from(this.#text + key);
  }

  /** Returns the first key after `key`, at which a list continues. */
  after(key: Uint8Array): Buffer {
    return Buffer.concat([key, Buffer.alloc(1)]);
  }

  decode(key: Buffer): Key {
    return key.toString('utf8', this.prefix.length);
  }

  /** Returns whether the key belongs to an internal record of the store. */
  isHidden(key: Buffer): boolean {
    return key[this.prefix.length] === 0;
  }
}

const noValue = Buffer.alloc(0);
const stampBytes = 8;

/**
 * Encodes the expiry time of a value. etcd does not store it, so that a value with a lease is preceded by it, as a
 * double. Other values are stored unchanged.
 */
export function expiryStamp(expiresAt: number): Buffer {
  const stamp = Buffer.allocUnsafe(stampBytes);
  stamp.writeDoubleBE(expiresAt);
  return stamp;
}

/**
 * @param messageBytes size of the answer that contains the value. A value that is most of the answer is shared; a small
 *   one is copied, so that the owner of the entry does not retain the whole answer.
 */
export function entryOf(key: Key, kv: KeyValue, messageBytes: number): Entry {
  const { createRevision, modRevision, leased, value: stored } = kv;
  if (leased && stored.length >= stampBytes) {
    const expiresAt = stored.readDoubleBE(0);
    return {
      key,
      value: retainedValue(stored.subarray(stampBytes), messageBytes),
      createRevision,
      modRevision,
      expiresAt,
    };
  }
  return { key, value: retainedValue(stored, messageBytes), createRevision, modRevision };
}

function retainedValue(value: Buffer, messageBytes: number): Buffer {
  if (value.length === 0) return noValue;
  return value.length * 2 >= messageBytes ? value : Buffer.from(value);
}
