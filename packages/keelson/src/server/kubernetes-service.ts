import { createHash } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import { missingIsUndefined } from '@keelson/client';
import {
  type ApiClient,
  formatMicroTime,
  isIPv6,
  isStatusError,
  type KubeObject,
  type ResourceClient,
  StatusReason,
} from '@keelson/core';
import type { Clock, Logger, Service as RunningService } from '@keelson/core/runtime';
import { EndpointSlice, Endpoints, Lease, Service } from '@keelson/kinds';

/** Address and port at which pods reach a server. */
export interface AdvertisedAddress {
  readonly ip: string;
  readonly port: number;
}

const objectName = { name: 'kubernetes', namespace: 'default' } as const;
/** Interval in which a server renews its lease and compares the objects with the leases of all servers. */
const periodMs = 10_000;
/** A server whose lease was not renewed for this time is removed from the endpoints. */
const leaseMs = 30_000;
const leaseNamespace = 'kube-system';
const leaseLabels = { 'apiserver.kubernetes.io/identity': 'kube-apiserver' } as const;
/** Longest time for which the start of a server waits until the objects are written. */
const startTimeoutMs = 3_000;

/** Endpoints do not contain these addresses, because each reader would reach its own machine by them. */
const localAddresses = new BlockList();
localAddresses.addSubnet('127.0.0.0', 8);
localAddresses.addAddress('::1', 'ipv6');
localAddresses.addSubnet('169.254.0.0', 16);
localAddresses.addSubnet('fe80::', 10, 'ipv6');

/**
 * The address that a server advertises when none is configured: the one it listens on. On a wildcard address it is the
 * first address of the machine that is not a loopback address.
 */
export async function defaultAdvertisedAddress(listenHost: string): Promise<string> {
  if (listenHost === '0.0.0.0' || listenHost === '::') {
    const all = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
    const external = all.filter(
      ({ internal, address }) => !internal && !localAddresses.check(address, familyOf(address)),
    );
    const found = external.find(({ family }) => family === 'IPv4') ?? external[0];
    return found?.address ?? '127.0.0.1';
  }
  return isIP(listenHost) === 0 ? (await lookup(listenHost)).address : listenHost;
}

function familyOf(ip: string): 'ipv4' | 'ipv6' {
  return isIPv6(ip) ? 'ipv6' : 'ipv4';
}

function serviceObject({ ip, port }: AdvertisedAddress): Service {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { ...objectName, labels: { component: 'apiserver', provider: 'kubernetes' } },
    spec: { clusterIP: ip, ports: [{ name: 'https', protocol: 'TCP', port, targetPort: port }] },
  };
}

/**
 * The addresses by port, both in ascending order; without addresses that each reader would resolve to its own machine.
 */
function addressesByPort(servers: readonly AdvertisedAddress[]): Map<number, string[]> {
  const byPort = new Map<number, string[]>();
  const sorted = [...servers].sort((a, b) => a.port - b.port || (a.ip < b.ip ? -1 : 1));
  for (const { ip, port } of sorted)
    if (!localAddresses.check(ip, familyOf(ip))) byPort.set(port, [...(byPort.get(port) ?? []), ip]);
  return byPort;
}

function endpointsObject(servers: readonly AdvertisedAddress[]): Endpoints {
  return {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { ...objectName, labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' } },
    subsets: [...addressesByPort(servers)].map(([port, ips]) => ({
      addresses: ips.map((ip) => ({ ip })),
      ports: [{ name: 'https', port, protocol: 'TCP' }],
    })),
  };
}

/** One slice for each family and port; the first one has the name of the service. */
function sliceObjects(servers: readonly AdvertisedAddress[]): EndpointSlice[] {
  const slices = [...addressesByPort(servers)].flatMap(([port, ips]) =>
    (['IPv4', 'IPv6'] as const).flatMap((addressType): EndpointSlice[] => {
      const own = ips.filter((ip) => isIPv6(ip) === (addressType === 'IPv6'));
      if (own.length === 0) return [];
      return [
        {
          metadata: {
            namespace: objectName.namespace,
            name: `${objectName.name}-${addressType.toLowerCase()}-${port}`,
          },
          addressType,
          endpoints: own.map((ip) => ({ addresses: [ip], conditions: { ready: true } })),
          ports: [{ name: 'https', port, protocol: 'TCP' }],
        },
      ];
    }),
  );
  const labels = { 'kubernetes.io/service-name': objectName.name };
  return slices.map((slice, i) => ({
    ...slice,
    metadata: { ...slice.metadata, labels, ...(i === 0 ? { name: objectName.name } : {}) },
  }));
}

/**
 * Maintains the service `kubernetes`, from which node agents determine the address of the server for pods. Its cluster
 * address is the address of a server itself, so that pods reach it where no proxy runs: the server that started last
 * sets it. The endpoints list all servers: each renews a lease, and each writes the addresses of those that do.
 */
export class KubernetesService implements RunningService {
  readonly name = 'kubernetes-service';
  readonly #options: { readonly api: ApiClient; readonly clock: Clock; readonly logger: Logger };
  readonly #address: AdvertisedAddress;
  readonly #leaseName: string;
  /** The last renewal of each lease, and when this process has observed it; clocks of servers may differ. */
  readonly #renewals = new Map<string, { renewed: string; seenAt: number }>();
  #cancel: () => void = () => {};
  #stopped = false;
  #written = false;
  #pass: Promise<void> = Promise.resolve();

  constructor(
    options: { readonly api: ApiClient; readonly clock: Clock; readonly logger: Logger },
    address: AdvertisedAddress,
  ) {
    this.#options = options;
    this.#address = address;
    this.#leaseName = `apiserver-${createHash('sha256').update(textOf(address)).digest('hex').slice(0, 26)}`;
  }

  /** Waits until the objects are written, but not longer than three seconds. */
  async start(): Promise<void> {
    this.#run();
    let cancel = () => {};
    const late = new Promise<void>((resolve) => {
      cancel = this.#options.clock.after(startTimeoutMs, resolve);
    });
    await Promise.race([this.#pass, late]).finally(() => cancel());
  }

  /** Removes this server from the endpoints, unless the store cannot be written. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#cancel();
    await this.#pass;
    const { api, logger } = this.#options;
    try {
      await api.resource(Lease).namespace(leaseNamespace).delete(this.#leaseName);
      const others = await this.#servers();
      // The next start writes the endpoints if this was the only server.
      if (others.length > 0) await this.#writeEndpoints(others);
    } catch (err) {
      logger.debug('this server was not removed from the endpoints of "kubernetes"', { err });
    }
  }

  #run(): void {
    if (this.#stopped) return;
    const { clock, logger } = this.#options;
    this.#pass = this.#write()
      .catch((err: unknown) => {
        // Another server has written the same object in the meantime.
        if (isStatusError(err, StatusReason.Conflict)) return;
        logger.warn('the service "kubernetes" cannot be written; pods do not find this server', { err });
      })
      .finally(() => {
        if (!this.#stopped) this.#cancel = clock.after(periodMs, () => this.#run());
      });
  }

  async #write(): Promise<void> {
    const services = this.#options.api.resource(Service).namespace(objectName.namespace);
    await provide(services, serviceObject(this.#address), !this.#written);
    this.#written = true;
    await this.#renew();
    await this.#writeEndpoints(await this.#servers());
  }

  async #renew(): Promise<void> {
    const { api, clock } = this.#options;
    const leases = api.resource(Lease).namespace(leaseNamespace);
    const renewTime = formatMicroTime(new Date(clock.now()));
    const spec = { holderIdentity: textOf(this.#address), leaseDurationSeconds: leaseMs / 1000, renewTime };
    try {
      await leases.patch(this.#leaseName, 'merge', { metadata: { labels: leaseLabels }, spec });
    } catch (error) {
      if (!isStatusError(error, StatusReason.NotFound)) throw error;
      await leases.create({ metadata: { name: this.#leaseName, labels: { ...leaseLabels } }, spec });
    }
  }

  /** The servers whose leases were renewed in time. Leases of others are removed. */
  async #servers(): Promise<AdvertisedAddress[]> {
    const { api, clock } = this.#options;
    const leases = api.resource(Lease).namespace(leaseNamespace);
    const [[label, value] = ['', '']] = Object.entries(leaseLabels);
    const { items } = await leases.list({ labelSelector: `${label}=${value}` });
    const now = clock.monotonic();
    const alive: AdvertisedAddress[] = [];
    for (const { metadata, spec } of items) {
      const name = metadata?.name ?? '';
      const renewed = `${spec?.renewTime}`;
      const known = this.#renewals.get(name);
      const seenAt = known?.renewed === renewed ? known.seenAt : now;
      this.#renewals.set(name, { renewed, seenAt });
      const server = addressOf(spec?.holderIdentity ?? '');
      if (server === undefined) continue;
      if (now - seenAt < leaseMs) alive.push(server);
      else await leases.delete(name).catch(missingIsUndefined);
    }
    return alive;
  }

  async #writeEndpoints(servers: readonly AdvertisedAddress[]): Promise<void> {
    const { api } = this.#options;
    const { namespace, name } = objectName;
    const endpoints = api.resource(Endpoints).namespace(namespace);
    await follow(endpoints, await endpoints.get(name).catch(missingIsUndefined), endpointsObject(servers));
    const slices = api.resource(EndpointSlice).namespace(namespace);
    const { items } = await slices.list({ labelSelector: `kubernetes.io/service-name=${name}` });
    const own = new Map(items.map((slice) => [slice.metadata.name, slice]));
    for (const wanted of sliceObjects(servers)) {
      const existing = own.get(wanted.metadata?.name ?? '');
      own.delete(wanted.metadata?.name ?? '');
      // The type of a slice cannot be changed.
      if (existing !== undefined && existing.addressType !== wanted.addressType)
        await slices.delete(existing.metadata?.name ?? '').catch(missingIsUndefined);
      await follow(slices, existing?.addressType === wanted.addressType ? existing : undefined, wanted);
    }
    for (const left of own.keys()) await slices.delete(left ?? '').catch(missingIsUndefined);
  }
}

function textOf({ ip, port }: AdvertisedAddress): string {
  return `${ip.includes(':') ? `[${ip}]` : ip}:${port}`;
}

/** The address in a lease; undefined for a lease of another program. */
function addressOf(text: string): AdvertisedAddress | undefined {
  const [, ip = '', port] = /^\[?([0-9a-fA-F.:]+?)\]?:(\d+)$/.exec(text) ?? [];
  return isIP(ip) === 0 ? undefined : { ip, port: Number(port) };
}

/** Creates the object, or updates it if the wanted fields differ. */
async function follow<T extends KubeObject>(objects: ResourceClient<T>, existing: T | undefined, wanted: T) {
  if (existing === undefined) {
    await objects.create(wanted).catch((error: unknown) => {
      if (!isStatusError(error, StatusReason.AlreadyExists)) throw error;
    });
    return;
  }
  const next = { ...existing, ...wanted, metadata: { ...existing.metadata, labels: wanted.metadata?.labels ?? {} } };
  if (!isDeepStrictEqual(JSON.parse(JSON.stringify(next)), JSON.parse(JSON.stringify(existing))))
    await objects.update(next);
}

/** Creates the object if it is missing; otherwise changes it, if `overwrite`. */
async function provide<T extends KubeObject>(objects: ResourceClient<T>, wanted: T, overwrite: boolean): Promise<void> {
  const { name } = objectName;
  const existing = await objects.get(name, overwrite ? {} : { resourceVersion: '0' }).catch(missingIsUndefined);
  if (existing === undefined) {
    await objects.create(wanted).catch((error: unknown) => {
      // Another server was faster; the address of the last start counts.
      if (!isStatusError(error, StatusReason.AlreadyExists)) throw error;
    });
    return;
  }
  if (!overwrite) return;
  try {
    await objects.update({ ...wanted, metadata: { ...wanted.metadata, resourceVersion: resourceVersionOf(existing) } });
  } catch (error) {
    // The address of a service cannot be changed.
    if (!isStatusError(error, StatusReason.Invalid)) throw error;
    await objects.delete(name, { preconditions: { resourceVersion: resourceVersionOf(existing) } });
    await objects.create(wanted);
  }
}

function resourceVersionOf({ metadata }: KubeObject): string {
  return metadata?.resourceVersion ?? '';
}
