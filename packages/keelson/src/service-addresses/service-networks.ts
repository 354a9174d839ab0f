import { missingIsUndefined } from '@keelson/client';
import { isConditionTrue, withCondition } from '@keelson/controller-kit';
import { type ApiClient, type ConditionObject, isStatusError, StatusReason } from '@keelson/core';
import type { Clock, Logger } from '@keelson/core/runtime';
import { ServiceCIDR, serviceCidrReady } from '@keelson/kinds';
import type { CachedObjects } from '../admission/cached-objects.ts';
import { AddressRange, type IpFamily } from './address-range.ts';

/** Name of the ServiceCIDR with the networks of the servers, as in Kubernetes. */
const defaultName = 'kubernetes';

export interface ServiceNetworksOptions {
  /** The networks of this server; from these addresses are allocated first. */
  readonly own: readonly AddressRange[];
  readonly cached: Pick<CachedObjects, 'list'>;
  readonly client: () => ApiClient;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The networks of cluster IPs: those of the server, and those of ServiceCIDR objects. */
export class ServiceNetworks {
  readonly #options: ServiceNetworksOptions;
  /** The networks of the object `kubernetes` that the last warning named. */
  #reported = '';

  constructor(options: ServiceNetworksOptions) {
    this.#options = options;
  }

  /** The families of the networks of the server: no service gets an address of another one. */
  get families(): readonly IpFamily[] {
    return this.#options.own.map(({ family }) => family);
  }

  /** The networks from which addresses are allocated. */
  ready(): Promise<readonly AddressRange[]> {
    return this.#networks(
      ({ metadata, status }) =>
        metadata?.deletionTimestamp === undefined && isConditionTrue(status?.conditions, serviceCidrReady),
    );
  }

  /** The networks that may contain addresses of services. */
  all(): Promise<readonly AddressRange[]> {
    return this.#networks(() => true);
  }

  async #networks(selects: (object: ServiceCIDR) => boolean): Promise<readonly AddressRange[]> {
    const { own, cached } = this.#options;
    const found = new Map(own.map((range) => [range.text, range]));
    for (const object of await cached.list(ServiceCIDR))
      if (selects(object))
        for (const text of object.spec.cidrs ?? []) {
          const range = found.has(text) ? undefined : rangeIn(text);
          if (range !== undefined) found.set(text, range);
        }
    return [...found.values()];
  }

  /** Creates the ServiceCIDR `kubernetes` unless it exists. A server with other networks than it has warns once. */
  async ensureDefault(): Promise<void> {
    const { own, client, clock, logger } = this.#options;
    const cidrs = own.map(({ text }) => text);
    const objects = client().resource(ServiceCIDR);
    const existing = await objects.get(defaultName).catch(missingIsUndefined);
    if (existing === undefined) {
      const message = 'Kubernetes default Service CIDR is ready';
      const ready = { type: serviceCidrReady, status: 'True', reason: '', message };
      const status = { conditions: [...withCondition<ConditionObject>([], ready, clock)] };
      await objects.create({ metadata: { name: defaultName }, spec: { cidrs }, status }).catch((error: unknown) => {
        // Another server was faster.
        if (!isStatusError(error, StatusReason.AlreadyExists)) throw error;
      });
      return;
    }
    const object = (existing.spec.cidrs ?? []).join(',');
    const server = cidrs.join(',');
    if (object === server || this.#reported === object) return;
    this.#reported = object;
    const message = 'the ServiceCIDR kubernetes has other networks than this server; services get addresses of both';
    logger.warn(message, { object, server });
  }
}

/** Undefined for a network that is too small to allocate addresses. */
function rangeIn(text: string): AddressRange | undefined {
  try {
    return new AddressRange(text, 'spec.cidrs');
  } catch {
    return undefined;
  }
}
