import { lookup } from 'node:dns/promises';
import { BlockList, isIP, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { type ApiClient, isStatusError, type KubeObject, type ResourceClient, StatusReason } from '@keelson/core';
import type { Clock, Logger, Service as RunningService } from '@keelson/core/runtime';
import { Endpoints, Service } from '@keelson/kinds';

/** Address and port at which pods reach a server. */
export interface AdvertisedAddress {
  readonly ip: string;
  readonly port: number;
}

const objectName = { name: 'kubernetes', namespace: 'default' } as const;
/** Interval in which the objects are created again when they were deleted. */
const periodMs = 10_000;
/** Longest time for which the start of a server waits until the objects are written. */
const startTimeoutMs = 3_000;

/** Endpoints do not contain these addresses: they would mean another machine to each reader. */
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

function endpointsObject({ ip, port }: AdvertisedAddress): Endpoints {
  const local = localAddresses.check(ip, familyOf(ip));
  return {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { ...objectName },
    subsets: local ? [] : [{ addresses: [{ ip }], ports: [{ name: 'https', port, protocol: 'TCP' }] }],
  };
}

/**
 * Maintains the service `kubernetes`, from which node agents determine the address of the server for pods. There is no
 * proxy for addresses of services, so its cluster address is the address of the server itself. The start of a server
 * overwrites the address of an earlier one; afterwards the objects are only created again when they are missing, so
 * that several servers do not overwrite each other.
 */
export class KubernetesService implements RunningService {
  readonly name = 'kubernetes-service';
  readonly #options: { readonly api: ApiClient; readonly clock: Clock; readonly logger: Logger };
  readonly #address: AdvertisedAddress;
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

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    await this.#pass;
  }

  #run(): void {
    if (this.#stopped) return;
    const { clock, logger } = this.#options;
    this.#pass = this.#write()
      .catch((err: unknown) =>
        logger.warn('the service "kubernetes" cannot be written; pods do not find this server', { err }),
      )
      .finally(() => {
        if (!this.#stopped) this.#cancel = clock.after(periodMs, () => this.#run());
      });
  }

  async #write(): Promise<void> {
    const { api } = this.#options;
    const overwrite = !this.#written;
    await provide(api.resource(Service).namespace(objectName.namespace), serviceObject(this.#address), overwrite);
    await provide(api.resource(Endpoints).namespace(objectName.namespace), endpointsObject(this.#address), overwrite);
    this.#written = true;
  }
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

function missingIsUndefined(error: unknown): undefined {
  if (!isStatusError(error, StatusReason.NotFound)) throw error;
}
