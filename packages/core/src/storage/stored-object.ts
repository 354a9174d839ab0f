import { StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import type { KubeObject } from '../meta/types.ts';
import { ByteBudget, type Droppable } from './byte-budget.ts';
import { compactAttributes } from './compact-attributes.ts';
import type { Representation } from './resource-storage.ts';
import type { Entry, Key, Revision } from './store.ts';
import { isSplicedFrom, restampResourceVersion, spliceResourceVersion, trySplice } from './stored-json.ts';

/** All derived forms of all objects together; they are made again when they are needed again. */
const derivedForms = new ByteBudget(32 * 1024 * 1024);

/** What few objects have: forms other than the stored one, and what selectors look at. */
class Derived {
  forms: Map<string, Buffer> | undefined;
  extract: ((object: KubeObject) => SelectableAttributes) | undefined;
  attributes: SelectableAttributes | undefined;
}

/**
 * One object at one revision, as bytes. The bytes are the wire JSON of the storage version, resourceVersion included; they
 * are shared by every answer and never changed. Parsing happens on demand and is not remembered, because parsed
 * objects cost three times their bytes.
 *
 * The bytes may lie in a bigger buffer with those of other objects, and may move; so `json` is a view made on demand.
 */
export class StoredObject implements Droppable {
  readonly key: Key;
  readonly revision: Revision;
  readonly createRevision: Revision;
  /** Undefined for an object whose stored bytes cannot be understood. */
  #bytes: Buffer | undefined;
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

  /** From stored bytes (without resourceVersion); fails with `Corrupt` when they have no metadata. */
  static fromValue(key: Key, revision: Revision, createRevision: Revision, value: Uint8Array): StoredObject {
    return new StoredObject(key, revision, createRevision, spliceResourceVersion(key, value, revision));
  }

  /** From a store's entry; never fails, but the object may be {@link corrupt}. */
  static fromEntry(entry: Entry): StoredObject {
    return new StoredObject(entry.key, entry.modRevision, entry.createRevision, trySplice(entry.value, entry.modRevision));
  }

  /** True when the stored bytes are no object; every look at them fails with `Corrupt`. */
  get corrupt(): boolean {
    return this.#bytes === undefined;
  }

  /** @throws StorageError `Corrupt` when the stored bytes are no object. */
  readable(): this {
    this.#readable();
    return this;
  }

  /** Wire JSON with metadata.resourceVersion. */
  get json(): Buffer {
    const bytes = this.#readable();
    return this.#end - this.#start === bytes.length ? bytes : bytes.subarray(this.#start, this.#end);
  }

  /** Length of {@link json}; 0 for a corrupt object. */
  get byteLength(): number {
    return this.#end - this.#start;
  }

  /** A new parse of the JSON; the caller owns the result. */
  value<T extends KubeObject = KubeObject>(): T {
    const bytes = this.#readable();
    try {
      return JSON.parse(bytes.toString('utf8', this.#start, this.#end)) as T;
    } catch (cause) {
      throw new StorageError(StorageErrorCode.Corrupt, `stored object ${this.key} is not JSON`, {
        key: this.key,
        revision: this.revision,
        cause,
      });
    }
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
    const attributes = compactAttributes(extract(this.value()));
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
    return this.#bytes !== undefined && isSplicedFrom(this.json, this.revision, value);
  }

  /** Copies the JSON to `target` and answers where it ends. */
  copyTo(target: Buffer, at: number): number {
    this.#readable().copy(target, at, this.#start, this.#end);
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
    if (bytes === undefined || bytes.length === this.byteLength) return;
    const own = Buffer.allocUnsafe(this.byteLength);
    bytes.copy(own, 0, this.#start, this.#end);
    this.moved(own, 0);
  }

  /** @internal Forgets derived forms. */
  drop(): void {
    if (this.#derived !== undefined) this.#derived.forms = undefined;
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
