import type { ServiceAddressRecords } from '@keelson/controllers';
import { type ObjectAllocator, UsageError } from '@keelson/core/internal';
import type { Logger } from '@keelson/core/runtime';
import type { Store } from '@keelson/core/storage-adapter';
import {
  AddressRange,
  defaultClusterIpRange,
  defaultNodePortRange,
  parsePortRange,
  type ServiceServerOptions,
} from './address-range.ts';
import { Claims } from './claims.ts';
import { ServiceAllocator, valuesOf } from './service-allocator.ts';

/** The addresses and node ports of the services of a plane. */
export interface PlaneServiceAddresses {
  readonly allocator: ObjectAllocator;
  readonly records: ServiceAddressRecords;
}

/**
 * @param store the store of the services, open before the first write
 * @throws UsageError for invalid ranges
 */
export function planeServiceAddresses(
  options: Partial<ServiceServerOptions>,
  store: () => Store,
  logger: Logger,
): PlaneServiceAddresses {
  const { serviceClusterIpRange = defaultClusterIpRange, serviceNodePortRange = defaultNodePortRange } = options;
  const addresses = serviceClusterIpRange
    .split(',')
    .map((text) => new AddressRange(text, '--service-cluster-ip-range'));
  if (addresses[0]?.family !== 'IPv4' || addresses.length > 2 || addresses[1]?.family === 'IPv4')
    throw new UsageError('--service-cluster-ip-range must be a network of IPv4, and at most one more of IPv6');
  const ports = parsePortRange(serviceNodePortRange, '--service-node-port-range');
  const claims = new Claims(store);
  return {
    allocator: new ServiceAllocator({ claims, addresses, ports, logger: logger.child({ component: 'services' }) }),
    records: {
      list: (kind) => claims.list(kind),
      claim: (kind, value, owner) => claims.claim(kind, value, owner),
      remove: (claim) => claims.remove(claim),
      valuesOf,
      inRange: (kind, value) =>
        kind === 'port'
          ? Number(value) >= ports.first && Number(value) <= ports.last
          : addresses.some((range) => range.has(value)),
    },
  };
}
