import type { ServiceAddressRecords } from '@keelson/controllers';
import type { ApiClient } from '@keelson/core';
import { type ObjectAllocator, UsageError } from '@keelson/core/internal';
import type { Clock, Logger } from '@keelson/core/runtime';
import type { Store } from '@keelson/core/storage-adapter';
import type { CachedObjects } from '../admission/cached-objects.ts';
import {
  AddressRange,
  defaultClusterIpRange,
  defaultNodePortRange,
  parsePortRange,
  type ServiceServerOptions,
} from './address-range.ts';
import { serviceClaims } from './claims.ts';
import { ServiceAllocator, valuesOf } from './service-allocator.ts';
import { ServiceNetworks } from './service-networks.ts';

/** The addresses and node ports of the services of a plane. */
export interface PlaneServiceAddresses {
  readonly allocator: ObjectAllocator;
  readonly records: ServiceAddressRecords;
}

export interface ServiceAddressContext {
  /** The store of the services, open before the first write. */
  readonly store: () => Store;
  readonly client: () => ApiClient;
  readonly cached: CachedObjects;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** @throws UsageError for invalid ranges */
export function planeServiceAddresses(
  options: Partial<ServiceServerOptions>,
  { store, client, cached, clock, logger: parent }: ServiceAddressContext,
): PlaneServiceAddresses {
  const { serviceClusterIpRange = defaultClusterIpRange, serviceNodePortRange = defaultNodePortRange } = options;
  const own = serviceClusterIpRange.split(',').map((text) => new AddressRange(text, '--service-cluster-ip-range'));
  if (own[0]?.family !== 'IPv4' || own.length > 2 || own[1]?.family === 'IPv4')
    throw new UsageError('--service-cluster-ip-range must be a network of IPv4, and at most one more of IPv6');
  const ports = parsePortRange(serviceNodePortRange, '--service-node-port-range');
  const claims = serviceClaims(client, store);
  const logger = parent.child({ component: 'services' });
  const networks = new ServiceNetworks({ own, cached, client, clock, logger });
  return {
    allocator: new ServiceAllocator({ claims, networks, ports, logger }),
    records: {
      prepare: () => networks.ensureDefault(),
      list: (kind) => claims[kind].list(),
      claim: (kind, value, owner) => claims[kind].claim(value, owner),
      remove: (claim) => claims[claim.kind].remove(claim),
      valuesOf,
      inRange: async (kind, value) =>
        kind === 'port'
          ? Number(value) >= ports.first && Number(value) <= ports.last
          : (await networks.all()).some((range) => range.has(value)),
    },
  };
}
