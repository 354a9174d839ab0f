import type { KindDefinition, KubeObject } from '@keelson/core';
import { objectKey, type ResourceStorage, type StoredObject } from '@keelson/core/internal';

/** Returns the storage of a kind. */
export interface StorageOfKind {
  forKind(kind: KindDefinition): ResourceStorage;
}

/** An object by name and UID. */
export interface ObjectIdentity {
  readonly name: string;
  readonly uid: string;
}

interface Identity {
  readonly uid: string;
  /** Epoch milliseconds; infinite when the object is not being deleted. */
  readonly deletedAtMs: number;
}

/** A token remains valid for this time after the end of the grace period of its objects, as in Kubernetes. */
const deletedToleranceMs = 60_000;

/** Reads the objects on which the validity of tokens depends. */
export class ExistingObjects {
  readonly #storages: StorageOfKind;
  /** The cache returns the same instance until the object changes, so each state is parsed once. */
  readonly #identities = new WeakMap<StoredObject, Identity>();

  constructor(storages: StorageOfKind) {
    this.#storages = storages;
  }

  /** The newest state of an object; undefined when it does not exist. @throws StorageError */
  async read<T extends KubeObject>(
    kind: KindDefinition<T>,
    namespace: string | undefined,
    name: string,
    at: 'latest' | 'any' = 'latest',
  ): Promise<T | undefined> {
    return (await this.#get(kind, namespace, name, at))?.value<T>();
  }

  /**
   * True when the object exists with this UID and was not deleted more than a minute ago. A cached object suffices for
   * true, but not for false, because a token can be used at another server as soon as it is issued.
   *
   * @throws StorageError
   */
  async exists(
    kind: KindDefinition,
    namespace: string | undefined,
    { name, uid }: ObjectIdentity,
    nowMs: number,
  ): Promise<boolean> {
    const isValid = (stored: StoredObject | undefined) => {
      const identity = stored && this.#identityOf(stored);
      return identity?.uid === uid && nowMs - identity.deletedAtMs <= deletedToleranceMs;
    };
    return (
      isValid(await this.#get(kind, namespace, name, 'any')) ||
      isValid(await this.#get(kind, namespace, name, 'latest'))
    );
  }

  #get(kind: KindDefinition, namespace: string | undefined, name: string, at: 'latest' | 'any') {
    return this.#storages.forKind(kind).get(objectKey(kind, namespace, name), { at });
  }

  #identityOf(stored: StoredObject): Identity {
    let identity = this.#identities.get(stored);
    if (identity === undefined) {
      const { uid = '', deletionTimestamp } = stored.value<KubeObject>().metadata ?? {};
      const deletedAtMs = deletionTimestamp ? Date.parse(deletionTimestamp) : Number.POSITIVE_INFINITY;
      identity = { uid, deletedAtMs };
      this.#identities.set(stored, identity);
    }
    return identity;
  }
}
