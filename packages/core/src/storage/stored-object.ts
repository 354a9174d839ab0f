import { parseJsonText } from '../codec/json-numbers.ts';
import { metadataRange } from '../codec/json-slice.ts';
import { StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import type { KubeObject } from '../meta/types.ts';
import { ByteBudget, type Droppable } from './byte-budget.ts';
import { compactAttributes } from './compact-attributes.ts';
import { plainIdentity } from './plain-identity.ts';
import type { Representation } from './resource-storage.ts';
import type { Entry, Key, Revision } from './store.ts';

/** All derived forms of all objects together; they are made again when they are needed again. */
const derivedForms = new ByteBudget(32 * 1024 * 1024);

/**
 * These stand for a beginning: the bytes are as they were stored, and those that are shared belong to the store and
 * stay so.
 */
const unstamped = -1;
const sharedUnstamped = -2;

/** A view that keeps more than this many times its bytes in memory, such as one of a network buffer, is copied. */
const keptAlong = 8;

/** Bytes of an object of which metadata are not cut out before they are looked through. */
const searchedWhole = 2048;

/**
 * What few objects have: forms other than the stored one, the JSON of one that is shared, and what selectors look at.
 */
class Derived {
  json: Buffer | undefined;
  forms: Map<string, Buffer> | undefined;
  extract: ((object: KubeObject) => SelectableAttributes) | undefined;
  attributes: SelectableAttributes | undefined;
}

/**
 * One object at one revision, as bytes. The bytes are the wire JSON of the storage version, resourceVersion included;
 * they are shared by every answer and never changed. Parsing happens on demand and is not remembered, because parsed
 * objects cost three times their bytes.
 *
 * The bytes may lie in a bigger buffer with those of other objects, and may move; so `json` is a view made on demand.
 * Of an object that has just been written they are those that were stored, and the resourceVersion is put in whenever
 * they are copied: such an object is usually copied twice, to its answer and to its place in the cache, and a copy of
 * its own would be garbage at once. Where the store has its values in this process's memory, the bytes are the store's
 * for good.
 */
export class StoredObject implements Droppable {
  readonly key: Key;
  readonly revision: Revision;
  readonly createRevision: Revision;
  /** Undefined for an object whose stored bytes cannot be understood. */
  #bytes: Buffer | undefined;
  /**
   * {@link unstamped} or {@link sharedUnstamped} when the bytes lack the resourceVersion; `#end - #start` is the length
   * of the JSON with it all the same.
   */
  #start = 0;
  #end: number;
  #derived: Derived | undefined = undefined;

  constructor(key: Key, revision: Revision, createRevision: Revision, json: Buffer | undefined) {
    this.key = key;
    this.revision = revision;
    this.createRevision = createRevision;
    this.#bytes = json;
    this.#end = json === undefined ? 0 : json.length;
  }

  /**
   * From bytes that have just been stored (without resourceVersion) and that nobody changes any more; fails with
   * `Corrupt` when they have no metadata. `shared`: they are the store's own.
   */
  static fromValue(
    key: Key,
    revision: Revision,
    createRevision: Revision,
    value: Buffer,
    shared = false,
  ): StoredObject {
    const at = metadataOffset(value);
    if (at === -1)
      throw new StorageError(StorageErrorCode.Corrupt, `stored object ${key} has no metadata`, { key, revision });
    const object = new StoredObject(key, revision, createRevision, value);
    object.#start = shared ? sharedUnstamped : unstamped;
    object.#end = object.#start + value.length + insertion(value, at, revision).length;
    return object;
  }

  /**
   * From a store's entry, whose value may be {@link StoreCapabilities.sharedValues}; never fails, but the object may be
   * {@link corrupt}.
   */
  static fromEntry({ key, modRevision, createRevision, value }: Entry, shared = false): StoredObject {
    const light = shared || value.byteLength * keptAlong >= value.buffer.byteLength;
    if (light && Buffer.isBuffer(value) && metadataOffset(value) !== -1) {
      return StoredObject.fromValue(key, modRevision, createRevision, value, shared);
    }
    return new StoredObject(key, modRevision, createRevision, trySplice(value, modRevision));
  }

  /** True when the stored bytes are no object; every look at them fails with `Corrupt`. */
  get corrupt(): boolean {
    return this.#bytes === undefined;
  }

  /** True when the bytes are the store's. They do not move. */
  get shared(): boolean {
    return this.#start === sharedUnstamped;
  }

  /** @throws StorageError `Corrupt` when the stored bytes are no object. */
  readable(): this {
    this.#readable();
    return this;
  }

  /** Wire JSON with metadata.resourceVersion. */
  get json(): Buffer {
    if (this.#start === sharedUnstamped) return this.#sharedJson();
    if (this.#start === unstamped) this.moved(this.#copy(), 0);
    const bytes = this.#readable();
    return this.#end - this.#start === bytes.length ? bytes : bytes.subarray(this.#start, this.#end);
  }

  /** Length of {@link json}; 0 for a corrupt object. */
  get byteLength(): number {
    return this.#end - this.#start;
  }

  /** A new parse of the JSON; the caller owns the result. Integers of 64 bits beyond ±(2^53 - 1) are bigints. */
  value<T extends KubeObject = KubeObject>(): T {
    return this.#parse(this.#text()) as T;
  }

  /**
   * As {@link value}, with integers beyond ±(2^53 - 1) rounded: labels and selectable fields are texts, and this is
   * read for every event.
   */
  #plainValue(): KubeObject {
    return this.#parse(this.#text(), false);
  }

  #text(): string {
    const bytes = this.#readable();
    return this.#start < 0 ? this.#stamped(bytes, bytes.length) : bytes.toString('utf8', this.#start, this.#end);
  }

  /**
   * As {@link value}, of kind, apiVersion and metadata alone: the rest, most of the bytes as a rule, is not looked at.
   */
  head(): KubeObject {
    const isUnstamped = this.#start < 0;
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
   * As {@link head}, but of metadata only what tells whose the object is: name, namespace, uid, resourceVersion, and
   * with them owner references, finalizers and deletionTimestamp where there are any. More may be there.
   */
  ownership(): KubeObject {
    const text = this.#metadataText();
    const identity = text === undefined ? undefined : plainIdentity(text);
    if (identity === undefined) return this.head();
    identity.resourceVersion = String(this.revision);
    return { metadata: identity };
  }

  /** The object in another form, made once as a rule; forms not used for long are forgotten. */
  encoded(representation: Representation): Buffer {
    if (representation.stored) return this.json;
    let bytes = this.#derived?.forms?.get(representation.id);
    if (bytes === undefined) {
      bytes = representation.encode(this);
      this.#derived ??= new Derived();
      this.#derived.forms ??= new Map();
      this.#derived.forms.set(representation.id, bytes);
      derivedForms.add(this, bytes.length);
    }
    return bytes;
  }

  /** What selectors look at, extracted at most once by the same `extract`. */
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
    return new StoredObject(this.key, revision, this.createRevision, json);
  }

  /** True when storing `value` (canonical JSON without resourceVersion) would change nothing. */
  holds(value: Buffer): boolean {
    if (this.#bytes === undefined) return false;
    return this.#start < 0 ? this.#bytes.equals(value) : isSplicedFrom(this.json, this.revision, value);
  }

  /** Copies the JSON to `target` and answers where it ends. */
  copyTo(target: Buffer, at: number): number {
    const bytes = this.#readable();
    if (this.#start >= 0) {
      bytes.copy(target, at, this.#start, this.#end);
    } else {
      const offset = metadataOffset(bytes);
      bytes.copy(target, at, 0, offset);
      const written = target.write(insertion(bytes, offset, this.revision), at + offset, 'latin1');
      bytes.copy(target, at + offset + written, offset);
    }
    return at + this.#end - this.#start;
  }

  /** @internal The JSON now lies in `block` at `at`, where it has been copied to. */
  moved(block: Buffer, at: number): void {
    this.#end = at + this.byteLength;
    this.#start = at;
    this.#bytes = block;
  }

  /** @internal Leaves a buffer shared with other objects, so that this object does not keep theirs in memory. */
  detach(): void {
    const bytes = this.#bytes;
    if (bytes === undefined || this.#start < 0 || bytes.length === this.byteLength) return;
    this.moved(this.#copy(), 0);
  }

  /** @internal Forgets derived forms. */
  drop(): void {
    if (this.#derived === undefined) return;
    this.#derived.forms = undefined;
    this.#derived.json = undefined;
  }

  /** The JSON of an object whose bytes are the store's, kept like other derived forms. */
  #sharedJson(): Buffer {
    let json = this.#derived?.json;
    if (json === undefined) {
      json = this.#copy();
      this.#derived ??= new Derived();
      this.#derived.json = json;
      derivedForms.add(this, json.length);
    }
    return json;
  }

  /**
   * A buffer of its own, from no shared pool: it moves into a block soon and would leave the slab to whoever lives
   * longer.
   */
  #copy(): Buffer {
    const own = Buffer.allocUnsafeSlow(this.byteLength);
    this.copyTo(own, 0);
    return own;
  }

  /**
   * The metadata behind their brace, as single bytes; of a small object with all that follows, because looking for
   * their end costs more.
   */
  #metadataText(): string | undefined {
    const bytes = this.#start < 0 ? this.#readable() : this.json;
    if (bytes.length <= searchedWhole) {
      const start = metadataOffset(bytes);
      return start === -1 ? undefined : bytes.toString('latin1', start);
    }
    const range = metadataRange(bytes);
    return range && bytes.toString('latin1', range.start + 1, range.end);
  }

  /** The text of unstamped bytes up to `end`, with the resourceVersion. */
  #stamped(bytes: Buffer, end: number): string {
    const offset = metadataOffset(bytes);
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
    throw new StorageError(StorageErrorCode.Corrupt, `stored object ${this.key} has no metadata`, {
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
