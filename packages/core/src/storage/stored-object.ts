import { StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import type { KubeObject } from '../meta/types.ts';
import type { Representation } from './resource-storage.ts';
import type { Key, Revision } from './store.ts';

const metadataStart = Buffer.from('"metadata":{');

/**
 * One object at one revision, as bytes. The bytes are the wire JSON of the storage version, resourceVersion included; they
 * are shared by every answer and never changed. Parsing happens on demand and is not remembered, because parsed
 * objects cost three times their bytes.
 */
export class StoredObject {
  readonly key: Key;
  readonly revision: Revision;
  readonly createRevision: Revision;
  /** Wire JSON with metadata.resourceVersion. */
  readonly json: Buffer;
  #encoded: Map<string, Buffer> | undefined;
  #selectable: SelectableAttributes | undefined;

  constructor(key: Key, revision: Revision, createRevision: Revision, json: Buffer) {
    this.key = key;
    this.revision = revision;
    this.createRevision = createRevision;
    this.json = json;
  }

  /** From stored bytes (without resourceVersion); fails with `Corrupt` when they have no metadata. */
  static fromValue(key: Key, revision: Revision, createRevision: Revision, value: Uint8Array): StoredObject {
    return new StoredObject(key, revision, createRevision, spliceResourceVersion(key, value, revision));
  }

  /** A new parse of the JSON; the caller owns the result. */
  value<T extends KubeObject = KubeObject>(): T {
    try {
      return JSON.parse(this.json.toString('utf8')) as T;
    } catch (cause) {
      throw new StorageError(StorageErrorCode.Corrupt, `stored object ${this.key} is not JSON`, {
        key: this.key,
        revision: this.revision,
        cause,
      });
    }
  }

  /** The object in another form, made at most once. */
  encoded(representation: Representation): Buffer {
    if (representation.stored) return this.json;
    this.#encoded ??= new Map();
    let bytes = this.#encoded.get(representation.id);
    if (bytes === undefined) {
      bytes = representation.encode(this);
      this.#encoded.set(representation.id, bytes);
    }
    return bytes;
  }

  /** What selectors look at, extracted at most once by `extract`. */
  selectable(extract: (object: KubeObject) => SelectableAttributes): SelectableAttributes {
    this.#selectable ??= extract(this.value());
    return this.#selectable;
  }
}

export interface SelectableAttributes {
  readonly labels: Readonly<Record<string, string>>;
  readonly fields: ReadonlyMap<string, string>;
}

/** Offset just behind `"metadata":{` in canonical JSON, where `"resourceVersion":"N",` belongs; -1 when absent. */
export function metadataOffset(value: Buffer): number {
  const at = value.indexOf(metadataStart);
  return at === -1 || at > 512 ? -1 : at + metadataStart.length;
}

/** Copies canonical JSON with `"resourceVersion":"<revision>"` put in as the first field of metadata. */
export function spliceResourceVersion(key: Key, value: Uint8Array, revision: Revision): Buffer {
  const source = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  const at = metadataOffset(source);
  if (at === -1) throw new StorageError(StorageErrorCode.Corrupt, `stored object ${key} has no metadata`, { key, revision });
  const close = source[at] === 0x7d;
  const text = `"resourceVersion":"${revision}"${close ? '' : ','}`;
  const out = Buffer.allocUnsafe(source.length + text.length);
  source.copy(out, 0, 0, at);
  out.write(text, at, 'latin1');
  source.copy(out, at + text.length, at);
  return out;
}
