import { missingIsUndefined } from '@keelson/client';
import type { AddressKind, ServiceAddressClaim, ServiceAddressOwner } from '@keelson/controllers';
import { type ApiClient, isStatusError, StatusReason } from '@keelson/core';
import { type Entry, prefixRange, type Store } from '@keelson/core/storage-adapter';
import { addressFamilyLabel, addressManagerLabel, IPAddress, serviceAddressManager } from '@keelson/kinds';
import { familyOf } from './address-range.ts';

/** The allocated values of one kind. A value has at most one claim, also when several servers claim it. */
export interface ClaimsOfKind {
  /** False when the value is claimed already. */
  claim(value: string, owner: ServiceAddressOwner): Promise<boolean>;
  owner(value: string): Promise<ServiceAddressOwner | undefined>;
  /** Releases the value if the service has it. */
  release(value: string, owner: ServiceAddressOwner): Promise<void>;
  /** Removes a claim that has not changed since it was read. */
  remove(claim: Pick<ServiceAddressClaim, 'value' | 'revision'>): Promise<void>;
  list(): Promise<ServiceAddressClaim[]>;
  /** The values that cannot be claimed. */
  values(): Promise<Set<string>>;
}

/** The allocated cluster IPs and node ports. */
export type Claims = Readonly<Record<AddressKind, ClaimsOfKind>>;

/**
 * @param client reads and writes the IPAddress objects of cluster IPs
 * @param store of the services, for node ports; opened before the first call
 */
export function serviceClaims(client: () => ApiClient, store: () => Store): Claims {
  return { address: new AddressClaims(client, store), port: new PortClaims(store) };
}

function isSameOwner(a: ServiceAddressOwner, b: ServiceAddressOwner): boolean {
  return a.namespace === b.namespace && a.name === b.name;
}

const pageSize = 500;
/** Cluster IPs were records like those of ports before they were IPAddress objects. */
const formerPrefix = '!keelson/service-address/';

/** A cluster IP is claimed by the IPAddress object of its name. */
class AddressClaims implements ClaimsOfKind {
  readonly #client: () => ApiClient;
  readonly #store: () => Store;

  constructor(client: () => ApiClient, store: () => Store) {
    this.#client = client;
    this.#store = store;
  }

  get #addresses() {
    return this.#client().resource(IPAddress);
  }

  async claim(value: string, { namespace, name }: ServiceAddressOwner): Promise<boolean> {
    const labels = { [addressFamilyLabel]: familyOf(value), [addressManagerLabel]: serviceAddressManager };
    const parentRef = { resource: 'services', namespace, name };
    try {
      await this.#addresses.create({ metadata: { name: value, labels }, spec: { parentRef } });
      return true;
    } catch (error) {
      if (isStatusError(error, StatusReason.AlreadyExists)) return false;
      throw error;
    }
  }

  async owner(value: string): Promise<ServiceAddressOwner | undefined> {
    const found = await this.#addresses.get(value).catch(missingIsUndefined);
    return found && parentOf(found);
  }

  async release(value: string, owner: ServiceAddressOwner): Promise<void> {
    const found = await this.#addresses.get(value).catch(missingIsUndefined);
    if (found === undefined || !isSameOwner(parentOf(found), owner)) return;
    await this.remove({ value, revision: found.metadata.resourceVersion });
  }

  async remove({ value, revision: resourceVersion }: Pick<ServiceAddressClaim, 'value' | 'revision'>): Promise<void> {
    try {
      await this.#addresses.delete(value, { preconditions: { resourceVersion } });
    } catch (error) {
      const { Conflict, NotFound } = StatusReason;
      if (![Conflict, NotFound].some((reason) => isStatusError(error, reason))) throw error;
    }
  }

  async list(): Promise<ServiceAddressClaim[]> {
    await this.#convertFormer();
    const found: ServiceAddressClaim[] = [];
    for await (const address of this.#all(`${addressManagerLabel}=${serviceAddressManager}`)) {
      const { name: value, resourceVersion: revision } = address.metadata;
      found.push({ kind: 'address', value, revision, ...parentOf(address) });
    }
    return found;
  }

  async values(): Promise<Set<string>> {
    const found = new Set<string>();
    for await (const { metadata } of this.#all()) found.add(metadata.name);
    return found;
  }

  async *#all(labelSelector = '') {
    let token: string | undefined;
    do {
      const page = await this.#addresses.list({
        labelSelector,
        limit: pageSize,
        ...(token ? { continue: token } : {}),
      });
      yield* page.items;
      token = page.metadata.continue;
    } while (token);
  }

  async #convertFormer(): Promise<void> {
    const store = this.#store();
    for await (const { entries } of store.list(prefixRange(formerPrefix)))
      for (const { key, modRevision, value } of entries) {
        await this.claim(key.slice(formerPrefix.length), ownerIn(value));
        await store.write({ op: 'delete', key, expect: modRevision });
      }
  }
}

function parentOf({ spec }: IPAddress): ServiceAddressOwner {
  const { group = '', resource, namespace = '', name } = spec.parentRef;
  return group === '' && resource === 'services' ? { namespace, name } : { namespace: '', name: '' };
}

/** Keys of kinds begin with a slash, so no list or watch of objects contains these records. */
const portPrefix = '!keelson/node-port/';

/** A node port is claimed by a record, which is written if it does not exist. */
class PortClaims implements ClaimsOfKind {
  readonly #store: () => Store;

  constructor(store: () => Store) {
    this.#store = store;
  }

  async claim(value: string, owner: ServiceAddressOwner): Promise<boolean> {
    const json = Buffer.from(JSON.stringify(owner));
    const result = await this.#store().write({ op: 'put', key: portPrefix + value, value: json, expect: 0 });
    return result.ok;
  }

  async owner(value: string): Promise<ServiceAddressOwner | undefined> {
    const { entry } = await this.#store().get(portPrefix + value);
    return entry && ownerIn(entry.value);
  }

  async release(value: string, owner: ServiceAddressOwner): Promise<void> {
    const { entry } = await this.#store().get(portPrefix + value);
    if (entry === undefined || !isSameOwner(ownerIn(entry.value), owner)) return;
    await this.remove({ value, revision: String(entry.modRevision) });
  }

  async remove({ value, revision }: Pick<ServiceAddressClaim, 'value' | 'revision'>): Promise<void> {
    await this.#store().write({ op: 'delete', key: portPrefix + value, expect: Number(revision) });
  }

  async list(): Promise<ServiceAddressClaim[]> {
    const found: ServiceAddressClaim[] = [];
    for await (const { entries } of this.#store().list(prefixRange(portPrefix)))
      for (const { key, modRevision, value } of entries)
        found.push({
          kind: 'port',
          value: key.slice(portPrefix.length),
          revision: String(modRevision),
          ...ownerIn(value),
        });
    return found;
  }

  async values(): Promise<Set<string>> {
    const found = new Set<string>();
    for await (const { entries } of this.#store().list(prefixRange(portPrefix), { keysOnly: true }))
      for (const { key } of entries) found.add(key.slice(portPrefix.length));
    return found;
  }
}

/** A damaged record is a claim that belongs to no service; the controller service-address-repair releases it. */
function ownerIn(value: Entry['value']): ServiceAddressOwner {
  try {
    const { namespace, name } = JSON.parse(Buffer.from(value).toString()) as Partial<ServiceAddressOwner>;
    return { namespace: namespace ?? '', name: name ?? '' };
  } catch {
    return { namespace: '', name: '' };
  }
}
