import type { Entry, Key } from '@keelson/core';
import type { KeyValue } from './responses.ts';

/**
 * Where a store lies in etcd: under a prefix that ends with a slash. The store's own records have names that begin with
 * U+0000, which no key may contain; they sort before all keys and are never listed or watched.
 */
export class KeySpace {
  readonly prefix: Buffer;
  /** First key that could be a user's. */
  readonly first: Buffer;
  /** First key behind the prefix. */
  readonly end: Buffer;
  readonly identity: Buffer;
  readonly cookie: Buffer;
  /** Never written. */
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

  /** The key behind which a list continues. */
  after(key: Uint8Array): Buffer {
    return Buffer.concat([key, Buffer.alloc(1)]);
  }

  decode(key: Buffer): Key {
    return key.toString('utf8', this.prefix.length);
  }

  /** One of the store's own records. */
  isHidden(key: Buffer): boolean {
    return key[this.prefix.length] === 0;
  }
}

const noValue = Buffer.alloc(0);
const stampBytes = 8;

/**
 * The time at which a value ends is not kept by etcd, so a value that hangs on a lease has it before itself, as a
 * double. Other values are stored as they are.
 */
export function expiryStamp(expiresAt: number): Buffer {
  const stamp = Buffer.allocUnsafe(stampBytes);
  stamp.writeDoubleBE(expiresAt);
  return stamp;
}

/**
 * @param messageBytes size of the answer that holds the value. A value that is most of it is shared; a small one is
 *   copied, so that whoever keeps it does not keep the whole answer.
 */
export function entryOf(key: Key, kv: KeyValue, messageBytes: number): Entry {
  const { createRevision, modRevision, leased, value: stored } = kv;
  if (leased && stored.length >= stampBytes) {
    const expiresAt = stored.readDoubleBE(0);
    return { key, value: kept(stored.subarray(stampBytes), messageBytes), createRevision, modRevision, expiresAt };
  }
  return { key, value: kept(stored, messageBytes), createRevision, modRevision };
}

function kept(value: Buffer, messageBytes: number): Buffer {
  if (value.length === 0) return noValue;
  return value.length * 2 >= messageBytes ? value : Buffer.from(value);
}
