import type { AddressKind, ServiceAddressClaim, ServiceAddressOwner } from '@keelson/controllers';
import { type Entry, prefixRange, type Store } from '@keelson/core/storage-adapter';

/** Keys of kinds begin with a slash, so no list or watch of objects contains these records. */
const prefixes = { address: '!keelson/service-address/', port: '!keelson/node-port/' } as const;

/**
 * The allocated addresses and ports: one record per value in the store of the services. A value is claimed by a write
 * that requires that its record does not exist, so two servers never claim the same one.
 */
export class Claims {
  readonly #store: () => Store;

  /** @param store opened before the first call */
  constructor(store: () => Store) {
    this.#store = store;
  }

  /** False when the value is claimed already. */
  async claim(kind: AddressKind, value: string, owner: ServiceAddressOwner): Promise<boolean> {
    const json = Buffer.from(JSON.stringify(owner));
    const result = await this.#store().write({ op: 'put', key: prefixes[kind] + value, value: json, expect: 0 });
    return result.ok;
  }

  async owner(kind: AddressKind, value: string): Promise<ServiceAddressOwner | undefined> {
    const { entry } = await this.#store().get(prefixes[kind] + value);
    return entry && ownerOf(entry);
  }

  /** Releases the value if the service with this uid has it. */
  async release(kind: AddressKind, value: string, uid: string): Promise<void> {
    const { entry } = await this.#store().get(prefixes[kind] + value);
    if (entry === undefined || ownerOf(entry).uid !== uid) return;
    await this.remove({ kind, value, revision: entry.modRevision });
  }

  /** Removes a claim that has not changed since it was read. */
  async remove({ kind, value, revision }: Pick<ServiceAddressClaim, 'kind' | 'value' | 'revision'>): Promise<void> {
    await this.#store().write({ op: 'delete', key: prefixes[kind] + value, expect: revision });
  }

  async list(kind: AddressKind): Promise<ServiceAddressClaim[]> {
    const found: ServiceAddressClaim[] = [];
    for await (const { entries } of this.#store().list(prefixRange(prefixes[kind])))
      for (const entry of entries)
        found.push({
          kind,
          value: entry.key.slice(prefixes[kind].length),
          revision: entry.modRevision,
          ...ownerOf(entry),
        });
    return found;
  }

  /** The claimed values. */
  async values(kind: AddressKind): Promise<Set<string>> {
    const found = new Set<string>();
    for await (const { entries } of this.#store().list(prefixRange(prefixes[kind]), { keysOnly: true }))
      for (const { key } of entries) found.add(key.slice(prefixes[kind].length));
    return found;
  }
}

/** A damaged record is a claim that belongs to no service; the controller service-address-repair releases it. */
function ownerOf(entry: Entry): ServiceAddressOwner {
  try {
    const { namespace, name, uid } = JSON.parse(Buffer.from(entry.value).toString()) as Partial<ServiceAddressOwner>;
    return { namespace: namespace ?? '', name: name ?? '', uid: uid ?? '' };
  } catch {
    return { namespace: '', name: '', uid: '' };
  }
}
