import { StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import type { KindDefinition } from '../kind/kind-definition.ts';
import type { ReadVirtual } from '../kind/virtual-kind.ts';
import type { KubeObject } from '../meta/types.ts';
import type { ContinueTokens } from '../storage/continue-token.ts';
import { ObjectList } from '../storage/object-list.ts';
import type { ReadPoint, ResourceStorage, StorageListOptions, StoredList } from '../storage/resource-storage.ts';
import { kindPrefix, objectKey } from '../storage/storage-key.ts';
import type { Key } from '../storage/store.ts';
import { StoredObject } from '../storage/stored-object.ts';

/** Computed objects have no history. */
const revision = 0;

const unsupported = (): never => {
  throw new Error('computed objects are read only');
};

/** Objects that are computed at each read, for kinds whose verbs are get and list. A list has one page. */
export class ComputedStorage implements ResourceStorage {
  readonly #kind: KindDefinition;
  readonly #read: ReadVirtual<KubeObject>;
  readonly #prefix: string;

  constructor(kind: KindDefinition, read: ReadVirtual<KubeObject>) {
    this.#kind = kind;
    this.#read = read;
    this.#prefix = kindPrefix(kind);
  }

  async get(key: Key, _at: ReadPoint, { signal }: { readonly signal?: AbortSignal } = {}) {
    const [first = '', second] = key.slice(this.#prefix.length).split('/');
    const place = second === undefined ? { namespace: undefined, name: first } : { namespace: first, name: second };
    const [object] = await this.#read(place, signal);
    return object && this.#stored(object);
  }

  async list(prefix: string, { predicate, signal }: StorageListOptions): Promise<StoredList> {
    const [namespace = ''] = prefix.slice(this.#prefix.length).split('/');
    const objects = await this.#read({ namespace: namespace || undefined, name: undefined }, signal);
    const stored = objects.map((object) => this.#stored(object)).filter((object) => predicate.matches(object));
    return new ObjectList(stored.sort(byKey), revision);
  }

  create = unsupported;
  update = unsupported;
  watch = unsupported;
  currentRevision = async () => revision;

  #stored(object: KubeObject): StoredObject {
    const { kind, apiVersion } = this.#kind;
    const { namespace, name = '' } = object.metadata ?? {};
    const json = Buffer.from(JSON.stringify({ kind, apiVersion, ...object }));
    return new StoredObject(objectKey(this.#kind, namespace, name), revision, revision, json);
  }
}

const byKey = (a: StoredObject, b: StoredObject): number => (a.key < b.key ? -1 : 1);

/** Lists of computed objects have one page, so every continue token is of another list. */
export const noTokens: ContinueTokens = {
  encode: unsupported,
  decode: () => {
    throw new StorageError(
      StorageErrorCode.InvalidToken,
      'lists of computed objects have one page and cannot be continued',
    );
  },
};
