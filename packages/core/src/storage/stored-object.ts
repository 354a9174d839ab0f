// One file: the representations of a stored object are derived from each other and share its bytes.
import { StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import { parseJsonText } from '../json/json.ts';
import { metadataRange } from '../json/json-slice.ts';
import type { KubeObject } from '../meta/types.ts';
import type { Droppable } from './byte-budget.ts';
import { compactAttributes } from './compact-attributes.ts';
import type { Representation } from './resource-storage.ts';
import type { ObjectSource } from './storage-memory.ts';
import type { Entry, Key, Revision } from './store.ts';
import { damageOf, plainIdentity } from './stored-value.ts';

/**
 * How the JSON of an object lies in memory.
 *
 * - `stamped`: with its resourceVersion, in a buffer that may contain other objects too. The JSON can move to another
 *   buffer.
 * - `unstamped`: the stored bytes, which lack the resourceVersion; every copy inserts it. The JSON can move, and is
 *   stamped from then on.
 * - `storeOwned`: as `unstamped`, in a buffer that belongs to the store. The bytes never move.
 */
type Layout = 'stamped' | 'unstamped' | 'storeOwned';

/** A value that is a view of a buffer more than this many times its size, such as a network buffer, is copied. */
const largestHostRatio = 8;

/** Up to this size, metadata are searched in the whole object; in larger ones their end is determined first. */
const searchedWholeBytes = 2048;

/**
 * Data that few objects have: forms other than the stored one, the JSON of a store-owned object, and the attributes
 * that selectors read.
 */
class Derived {
  json: Buffer | undefined;
  forms: Map<string, Buffer> | undefined;
  extract: ((object: KubeObject) => SelectableAttributes) | undefined;
  attributes: SelectableAttributes | undefined;
  /** Why the object is corrupt. */
  damage: string | undefined;
}

/**
 * One object at one revision, as bytes. The bytes are the wire JSON of the storage version, resourceVersion included;
 * they are shared by every response and never changed. Parsing happens on demand and its result is not kept, because
 * parsed objects cost three times their bytes.
 *
 * The bytes can lie in a larger buffer with those of other objects, and can move, so `json` is a view created on
 * demand. An object that has just been written is `unstamped`: it is usually copied twice, to its response and to its
 * place in the cache, and a copy of its own would be garbage at once. Where the store keeps its values in the memory of
 * this process, the object is `storeOwned`.
 */
export class StoredObject implements Droppable {
  readonly key: Key;
  readonly revision: Revision;
  readonly createRevision: Revision;
  /**
   * The source of the bytes. Undefined for objects that are not in a store, such as those of bookmarks: nothing that is
   * derived from them is kept.
   */
  readonly source: ObjectSource | undefined;
  /** Undefined when the stored bytes are corrupt. */
  #bytes: Buffer | undefined;
  #layout: Layout = 'stamped';
  /** Offset in `#bytes`: of the JSON when the layout is `stamped`, otherwise of the place of the resourceVersion. */
  #start = 0;
  /** Length of the JSON with its resourceVersion, in every layout. */
  #length: number;
  #derived: Derived | undefined = undefined;

  constructor(key: Key, revision: Revision, createRevision: Revision, json: Buffer | undefined, source?: ObjectSource) {
    this.key = key;
    this.revision = revision;
    this.createRevision = createRevision;
    this.source = source;
    this.#bytes = json;
    this.#length = json === undefined ? 0 : json.length;
  }

  /**
   * From bytes that have just been stored (without resourceVersion) and that no code changes any more.
   *
   * @throws StorageError `Corrupt` when the bytes have no metadata.
   */
  static fromValue(
    key: Key,
    revision: Revision,
    createRevision: Revision,
    value: Buffer,
    source?: ObjectSource,
  ): StoredObject {
    const at = metadataOffset(value);
    if (at === -1)
      throw new StorageError(StorageErrorCode.Corrupt, `stored object ${key} has no metadata`, { key, revision });
    const object = new StoredObject(key, revision, createRevision, value, source);
    object.#layout = source?.sharedValues ? 'storeOwned' : 'unstamped';
    object.#start = at;
    object.#length += insertion(value, at, revision).length;
    return object;
  }

  /** From an entry of a store. Never fails, but the object may be {@link corrupt}. */
  static fromEntry(entry: Entry, source?: ObjectSource): StoredObject {
    const { key, modRevision, createRevision, value } = entry;
    const light = source?.sharedValues || value.byteLength * largestHostRatio >= value.buffer.byteLength;
    if (light && Buffer.isBuffer(value) && metadataOffset(value) !== -1) {
      return StoredObject.fromValue(key, modRevision, createRevision, value, source);
    }
    const object = new StoredObject(key, modRevision, createRevision, trySplice(value, modRevision), source);
    if (object.corrupt) {
      object.#derived = new Derived();
      object.#derived.damage = damageOf(entry);
    }
    return object;
  }

  /** True when the stored bytes are no object; every method that reads them fails with `Corrupt`. */
  get corrupt(): boolean {
    return this.#bytes === undefined;
  }

  /** True when the bytes belong to the store. They do not move. */
  get shared(): boolean {
    return this.#layout === 'storeOwned';
  }

  /** @throws StorageError `Corrupt` when the stored bytes are no object. */
  readable(): this {
    this.#readable();
    return this;
  }

  /** Wire JSON with metadata.resourceVersion. */
  get json(): Buffer {
    if (this.#layout === 'storeOwned') return this.#sharedJson();
    if (this.#layout === 'unstamped') this.moved(this.#copy(), 0);
    const bytes = this.#readable();
    return this.#length === bytes.length ? bytes : bytes.subarray(this.#start, this.#start + this.#length);
  }

  /** Length of {@link json}; 0 for a corrupt object. */
  get byteLength(): number {
    return this.#length;
  }

  /** A new parse of the JSON; the caller owns the result. Integers of 64 bits beyond ±(2^53 - 1) are bigints. */
  value<T extends KubeObject = KubeObject>(): T {
    return this.#parse(this.#text()) as T;
  }

  /**
   * As {@link value}, with integers beyond ±(2^53 - 1) rounded. Labels and selectable fields are strings, and this
   * method runs for every event.
   */
  #plainValue(): KubeObject {
    return this.#parse(this.#text(), false);
  }

  #text(): string {
    const bytes = this.#readable();
    if (this.#layout !== 'stamped') return this.#stamped(bytes, bytes.length);
    return bytes.toString('utf8', this.#start, this.#start + this.#length);
  }

  /**
   * As {@link value}, of kind, apiVersion and metadata only. The rest, usually most of the bytes, is not parsed.
   */
  head(): KubeObject {
    const isUnstamped = this.#layout !== 'stamped';
    const bytes = isUnstamped ? this.#readable() : this.json;
    const metadata = metadataRange(bytes);
    if (metadata !== undefined) {
      const text = isUnstamped ? this.#stamped(bytes, metadata.end) : bytes.toString('utf8', 0, metadata.end);
      return this.#parse(`${text}}`);
    }
    const { kind = '', apiVersion = '', metadata: whole = {} } = this.value();
    return { kind, apiVersion, metadata: whole };
  }

  /**
   * As {@link head}, with the metadata that identify the object and its owners: name, namespace, uid, resourceVersion,
   * owner references, finalizers and deletionTimestamp. The result may contain further metadata.
   */
  ownership(): KubeObject {
    const text = this.#metadataText();
    const identity = text === undefined ? undefined : plainIdentity(text);
    if (identity === undefined) return this.head();
    identity.resourceVersion = String(this.revision);
    return { metadata: identity };
  }

  /** The object in another form. Forms are kept and shared while the memory budget lasts. */
  encoded(representation: Representation): Buffer {
    if (representation.stored) return this.json;
    let bytes = this.#derived?.forms?.get(representation.id);
    if (bytes === undefined) {
      bytes = representation.encode(this);
      const budget = this.source?.memory?.derivedForms;
      if (budget === undefined) return bytes;
      this.#derived ??= new Derived();
      this.#derived.forms ??= new Map();
      this.#derived.forms.set(representation.id, bytes);
      budget.add(this, bytes.length);
    }
    return bytes;
  }

  /** The attributes that selectors read, extracted at most once by the same `extract`. */
  selectable(extract: (object: KubeObject) => SelectableAttributes): SelectableAttributes {
    const known = this.#derived;
    if (known?.attributes !== undefined && known.extract === extract) return known.attributes;
    const attributes = compactAttributes(extract(this.#plainValue()));
    this.#derived ??= new Derived();
    this.#derived.extract = extract;
    this.#derived.attributes = attributes;
    return attributes;
  }

  /** The same state with another resourceVersion, as a DELETED event shows it. */
  restamped(revision: Revision): StoredObject {
    const json = this.#bytes === undefined ? undefined : restampResourceVersion(this.json, this.revision, revision);
    return new StoredObject(this.key, revision, this.createRevision, json, this.source);
  }

  /** True when storing `value` (canonical JSON without resourceVersion) would change nothing. */
  holds(value: Buffer): boolean {
    if (this.#bytes === undefined) return false;
    if (this.#layout !== 'stamped') return this.#bytes.equals(value);
    return isSplicedFrom(this.json, this.revision, value);
  }

  /** Copies the JSON to `target` at offset `at`; returns the offset of its end. */
  copyTo(target: Buffer, at: number): number {
    const bytes = this.#readable();
    if (this.#layout === 'stamped') {
      bytes.copy(target, at, this.#start, this.#start + this.#length);
    } else {
      const offset = this.#start;
      // These are few bytes, for which a loop costs less than a call.
      for (let i = 0; i < offset; i++) target[at + i] = bytes[i] as number;
      const written = target.write(insertion(bytes, offset, this.revision), at + offset, 'latin1');
      bytes.copy(target, at + offset + written, offset);
    }
    return at + this.#length;
  }

  /** @internal Replaces the bytes by a copy of the JSON that the caller has made in `block` at offset `at`. */
  moved(block: Buffer, at: number): void {
    this.#layout = 'stamped';
    this.#start = at;
    this.#bytes = block;
  }

  /** @internal Moves out of a buffer with other objects, so that this object does not keep their bytes in memory. */
  detach(): void {
    const bytes = this.#bytes;
    if (bytes === undefined || this.#layout !== 'stamped' || bytes.length === this.#length) return;
    this.moved(this.#copy(), 0);
  }

  /** @internal Releases derived forms. */
  drop(): void {
    if (this.#derived === undefined) return;
    this.#derived.forms = undefined;
    this.#derived.json = undefined;
  }

  /** The JSON of a store-owned object, kept like other derived forms. */
  #sharedJson(): Buffer {
    let json = this.#derived?.json;
    if (json === undefined) {
      json = this.#copy();
      const budget = this.source?.memory?.derivedForms;
      if (budget === undefined) return json;
      this.#derived ??= new Derived();
      this.#derived.json = json;
      budget.add(this, json.length);
    }
    return json;
  }

  /**
   * A copy in a buffer of its own. It does not come from the buffer pool of Node, because it usually moves into a block
   * soon, while other slices would keep the whole slab of the pool in memory.
   */
  #copy(): Buffer {
    const own = Buffer.allocUnsafeSlow(this.#length);
    this.copyTo(own, 0);
    return own;
  }

  /**
   * The text of the metadata after their opening brace, decoded as latin1. Of a small object it includes everything
   * that follows, because determining the end of the metadata would cost more.
   */
  #metadataText(): string | undefined {
    const bytes = this.#layout === 'stamped' ? this.json : this.#readable();
    if (bytes.length <= searchedWholeBytes) {
      const start = metadataOffset(bytes);
      return start === -1 ? undefined : bytes.toString('latin1', start);
    }
    const range = metadataRange(bytes);
    return range && bytes.toString('latin1', range.start + 1, range.end);
  }

  /** The text of stored bytes up to `end`, with the resourceVersion inserted. */
  #stamped(bytes: Buffer, end: number): string {
    const offset = this.#start;
    return (
      bytes.toString('utf8', 0, offset) + insertion(bytes, offset, this.revision) + bytes.toString('utf8', offset, end)
    );
  }

  #parse(text: string, exact = true): KubeObject {
    try {
      return (exact ? parseJsonText(text) : JSON.parse(text)) as KubeObject;
    } catch (cause) {
      throw new StorageError(StorageErrorCode.Corrupt, `stored object ${this.key} is not JSON`, {
        key: this.key,
        revision: this.revision,
        cause,
      });
    }
  }

  #readable(): Buffer {
    if (this.#bytes !== undefined) return this.#bytes;
    const damage = this.#derived?.damage ?? 'has no metadata';
    throw new StorageError(StorageErrorCode.Corrupt, `stored object ${this.key} ${damage}`, {
      key: this.key,
      revision: this.revision,
    });
  }
}

export interface SelectableAttributes {
  readonly labels: Readonly<Record<string, string>>;
  readonly fields: ReadonlyMap<string, string>;
}

const metadataStart = Buffer.from('"metadata":{');
const closingBrace = 0x7d;

/** Offset after `"metadata":{` in canonical JSON, where `"resourceVersion":"N",` belongs; -1 when absent. */
export function metadataOffset(value: Buffer): number {
  const at = value.indexOf(metadataStart);
  return at === -1 || at > 512 ? -1 : at + metadataStart.length;
}

/** Copies canonical JSON with `"resourceVersion":"<revision>"` put in as the first field of metadata. */
export function spliceResourceVersion(key: Key, value: Uint8Array, revision: Revision): Buffer {
  const out = trySplice(value, revision);
  if (out !== undefined) return out;
  throw new StorageError(StorageErrorCode.Corrupt, `stored object ${key} has no metadata`, { key, revision });
}

/** As {@link spliceResourceVersion}; undefined when there is no metadata. */
export function trySplice(value: Uint8Array, revision: Revision): Buffer | undefined {
  const source = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  const at = metadataOffset(source);
  return at === -1 ? undefined : replaceRange(source, at, at, insertion(source, at, revision));
}

/** The text that is inserted into `value` at offset `at`, the start of its metadata. */
export function insertion(value: Buffer, at: number, revision: Revision): string {
  return value[at] === closingBrace ? stampOf(revision) : `${stampOf(revision)},`;
}

/** A copy of wire JSON whose resourceVersion is `revision` instead of `old`. */
export function restampResourceVersion(json: Buffer, old: Revision, revision: Revision): Buffer {
  const at = metadataOffset(json);
  return replaceRange(json, at, at + stampOf(old).length, stampOf(revision));
}

/** True when `json` is `value` with the resourceVersion `revision` inserted. Compares without a copy. */
export function isSplicedFrom(json: Buffer, revision: Revision, value: Buffer): boolean {
  const at = metadataOffset(value);
  if (at === -1) return false;
  const resume = at + stampOf(revision).length + (value[at] === closingBrace ? 0 : 1);
  return (
    json.length - resume === value.length - at &&
    json.compare(value, 0, at, 0, at) === 0 &&
    json.compare(value, at, value.length, resume, json.length) === 0
  );
}

function stampOf(revision: Revision): string {
  return `"resourceVersion":"${revision}"`;
}

function replaceRange(source: Buffer, start: number, end: number, text: string): Buffer {
  // Not from the shared pool: these bytes are moved into a block soon, while other users of the slab would keep it.
  const out = Buffer.allocUnsafeSlow(source.length - (end - start) + text.length);
  source.copy(out, 0, 0, start);
  out.write(text, start, 'latin1');
  source.copy(out, start + text.length, end);
  return out;
}
