import type { AddressKind, ServiceAddressOwner } from '@keelson/controllers';
import { type FieldError, fieldError, type KubeObject, statusErrors } from '@keelson/core';
import type { Allocation, ObjectAllocator } from '@keelson/core/internal';
import type { Logger } from '@keelson/core/runtime';
import { Service } from '@keelson/kinds';
import {
  type AddressRange,
  canonicalAddress,
  familyOf,
  type IpFamily,
  type NumberRange,
  numbersOf,
  randomNumber,
} from './address-range.ts';
import type { Claims } from './claims.ts';
import type { ServiceNetworks } from './service-networks.ts';

export interface ServiceAllocatorOptions {
  readonly claims: Claims;
  readonly networks: Pick<ServiceNetworks, 'families' | 'ready'>;
  readonly ports: NumberRange;
  readonly logger: Logger;
}

type Spec = Service['spec'];
/** A claimed value; texts of addresses are canonical. */
interface Value {
  readonly kind: AddressKind;
  readonly value: string;
}

/** Random values that are tried before all claims are read. */
const attempts = 8;

/**
 * Allocates cluster addresses and node ports of services: see docs/reference/api-rules.md#allocated-fields-of-services.
 */
export class ServiceAllocator implements ObjectAllocator {
  readonly #options: ServiceAllocatorOptions;

  constructor(options: ServiceAllocatorOptions) {
    this.#options = options;
  }

  async allocate(object: KubeObject, old: KubeObject | undefined, dryRun: boolean): Promise<Allocation> {
    const service = object as Service;
    const before = old === undefined ? [] : valuesOf(old as Service);
    const pass = new AllocationPass(this.#options, service, before, dryRun);
    try {
      await pass.run();
    } catch (error) {
      await this.#release(pass.claimed, pass.owner);
      throw error;
    }
    return {
      end: async (stored) => {
        if (dryRun) return;
        const now = new Set(valuesOf(service).map(textOf));
        await this.#release(stored ? before.filter((value) => !now.has(textOf(value))) : pass.claimed, pass.owner);
      },
    };
  }

  async release(object: KubeObject): Promise<void> {
    await this.#release(valuesOf(object as Service), ownerOf(object));
  }

  /** Releases values. The controller service-address-repair releases those that cannot be released now. */
  async #release(values: readonly Value[], owner: ServiceAddressOwner): Promise<void> {
    const { claims, logger } = this.#options;
    for (const { kind, value } of values)
      await claims[kind]
        .release(value, owner)
        .catch((err: unknown) => logger.warn('an address of a service was not released', { kind, value, err }));
  }
}

/** Allocates the values of one service that its stored state does not have yet. */
class AllocationPass {
  readonly owner: ServiceAddressOwner;
  readonly claimed: Value[] = [];
  readonly #options: ServiceAllocatorOptions;
  readonly #service: Service;
  readonly #spec: Spec;
  /** Values that the service has already, or has claimed in this pass. */
  readonly #own: Set<string>;
  readonly #dryRun: boolean;
  /** The networks from which addresses are allocated, in the order in which they are tried. */
  #ranges: readonly AddressRange[] = [];

  constructor(options: ServiceAllocatorOptions, service: Service, before: readonly Value[], dryRun: boolean) {
    this.#options = options;
    this.#service = service;
    this.#spec = service.spec;
    this.#own = new Set(before.map(textOf));
    this.#dryRun = dryRun;
    this.owner = ownerOf(service);
  }

  async run(): Promise<void> {
    if (this.#spec.type !== 'ExternalName' && !isServerAddress(this.#service)) await this.#addresses();
    if (hasNodePorts(this.#spec)) await this.#ports();
  }

  async #addresses(): Promise<void> {
    const spec = this.#spec;
    this.#ranges = await this.#options.networks.ready();
    const families = this.#families();
    if (spec.clusterIP === 'None') return;
    const given = spec.clusterIPs ?? [];
    const addresses: string[] = [];
    for (const [i, family] of families.entries()) {
      const wanted = given[i];
      if (wanted === undefined || wanted === '') addresses.push(await this.#anyAddress(family));
      else {
        await this.#requestAddress(wanted, family, i);
        addresses.push(wanted);
      }
    }
    spec.clusterIPs = addresses;
    spec.clusterIP = addresses[0] ?? '';
  }

  /** The families of the service; completed as its policy requires. */
  #families(): readonly IpFamily[] {
    const spec = this.#spec;
    const served = this.#options.networks.families;
    const families = (spec.ipFamilies ?? []) as IpFamily[];
    // A headless service without a selector may have endpoints of every family.
    if (spec.clusterIP === 'None' && Object.keys(spec.selector ?? {}).length === 0) return [];
    for (const [i, family] of families.entries())
      if (!served.includes(family))
        this.#fail(fieldError.invalid(`spec.ipFamilies[${i}]`, family, 'not configured on this cluster'));
    if (spec.ipFamilyPolicy === 'RequireDualStack' && served.length < 2)
      this.#fail(
        fieldError.invalid(
          'spec.ipFamilyPolicy',
          spec.ipFamilyPolicy,
          'this cluster is not configured for dual-stack services',
        ),
      );
    if (spec.ipFamilyPolicy === 'SingleStack') return families;
    const all = [...new Set([...families, ...served])];
    spec.ipFamilies = all;
    return all;
  }

  async #requestAddress(address: string, family: IpFamily, i: number): Promise<void> {
    const value = canonicalAddress(address);
    if (this.#own.has(textOf({ kind: 'address', value }))) return;
    if (familyOf(address) !== family)
      this.#fail(
        fieldError.invalid(
          `spec.clusterIPs[${i}]`,
          address,
          `expected an ${family} value as indicated by \`ipFamilies[${i}]\``,
        ),
      );
    const ranges = this.#ranges.filter((one) => one.family === family);
    let problem: string | undefined;
    if (!ranges.some((range) => range.has(value))) {
      const valid = ranges.map(({ text }) => text).join(', ');
      problem = `the provided IP (${address}) is not in the valid range. The range of valid IPs is ${valid}`;
    } else if (!(await this.#claim({ kind: 'address', value }))) problem = 'provided IP is already allocated';
    if (problem !== undefined)
      this.#fail(
        fieldError.invalid('spec.clusterIPs', this.#spec.clusterIPs, `failed to allocate IP ${address}: ${problem}`),
      );
  }

  async #anyAddress(family: IpFamily): Promise<string> {
    for (const range of this.#ranges.filter((one) => one.family === family)) {
      const value = await this.#any('address', range, (offset) => range.at(offset));
      if (value !== undefined) return value;
    }
    throw statusErrors.internal('failed to allocate a serviceIP: range is full');
  }

  async #ports(): Promise<void> {
    const spec = this.#spec;
    const ports = spec.ports ?? [];
    const allocates = spec.type === 'NodePort' || spec.allocateLoadBalancerNodePorts !== false;
    /** Ports of several protocols with the same number have the same node port. */
    const byPort = new Map<number, number>();
    for (const [i, port] of ports.entries()) {
      if (!port.nodePort) continue;
      await this.#requestPort(port.nodePort, `spec.ports[${i}].nodePort`);
      byPort.set(port.port, byPort.get(port.port) ?? port.nodePort);
    }
    for (const port of ports) {
      if (port.nodePort || !allocates) continue;
      const nodePort = byPort.get(port.port) ?? (await this.#anyPort('a nodePort'));
      byPort.set(port.port, nodePort);
      port.nodePort = nodePort;
    }
    if (!hasHealthCheckPort(spec)) return;
    if (spec.healthCheckNodePort) await this.#requestPort(spec.healthCheckNodePort, 'spec.healthCheckNodePort');
    else spec.healthCheckNodePort = await this.#anyPort('a HealthCheck NodePort');
  }

  async #requestPort(port: number, path: string): Promise<void> {
    const value = String(port);
    if (this.#own.has(textOf({ kind: 'port', value }))) return;
    const { first, last } = this.#options.ports;
    if (port < first || port > last) {
      const detail = `provided port is not in the valid range. The range of valid ports is ${first}-${last}`;
      this.#fail(fieldError.invalid(path, port, detail));
    }
    if (!(await this.#claim({ kind: 'port', value })))
      this.#fail(fieldError.invalid(path, port, 'provided port is already allocated'));
  }

  async #anyPort(what: string): Promise<number> {
    const value = await this.#any('port', this.#options.ports, String);
    if (value === undefined) throw statusErrors.internal(`failed to allocate ${what}: range is full`);
    return Number(value);
  }

  /** A free value: a random one, or when the range is nearly full, the first one that no record claims. */
  async #any(kind: AddressKind, range: NumberRange, text: (number: number) => string): Promise<string | undefined> {
    for (let i = 0; i < attempts; i++) {
      const value = text(randomNumber(range));
      if (await this.#claim({ kind, value })) return value;
    }
    const taken = await this.#options.claims[kind].values();
    for (const number of numbersOf(range)) {
      const value = text(number);
      if (!taken.has(value) && (await this.#claim({ kind, value }))) return value;
    }
    return undefined;
  }

  async #claim(value: Value): Promise<boolean> {
    const claims = this.#options.claims[value.kind];
    // A value that another field of the service already has is not free.
    if (this.#own.has(textOf(value))) return false;
    if (this.#dryRun) return (await claims.owner(value.value)) === undefined;
    if (!(await claims.claim(value.value, this.owner))) return false;
    this.claimed.push(value);
    this.#own.add(textOf(value));
    return true;
  }

  #fail(error: FieldError): never {
    throw statusErrors.invalid(Service, this.owner.name, [error]);
  }
}

/** The values that a stored service has. */
export function valuesOf(service: Service): Value[] {
  const { spec } = service;
  const values: Value[] = [];
  const add = (kind: AddressKind, value: string) => {
    if (!values.some((other) => other.kind === kind && other.value === value)) values.push({ kind, value });
  };
  if (spec.type !== 'ExternalName' && !isServerAddress(service))
    for (const address of spec.clusterIPs ?? (spec.clusterIP ? [spec.clusterIP] : []))
      if (address !== 'None' && address !== '') add('address', canonicalAddress(address));
  if (hasNodePorts(spec)) for (const { nodePort } of spec.ports ?? []) if (nodePort) add('port', String(nodePort));
  if (hasHealthCheckPort(spec) && spec.healthCheckNodePort) add('port', String(spec.healthCheckNodePort));
  return values;
}

/** The service `kubernetes` has an address of a server, at which pods reach it without a proxy. */
function isServerAddress({ metadata }: Service): boolean {
  return metadata?.namespace === 'default' && metadata.name === 'kubernetes';
}

function hasNodePorts({ type }: Spec): boolean {
  return type === 'NodePort' || type === 'LoadBalancer';
}

function hasHealthCheckPort({ type, externalTrafficPolicy }: Spec): boolean {
  return type === 'LoadBalancer' && externalTrafficPolicy === 'Local';
}

function textOf({ kind, value }: Value): string {
  return `${kind}/${value}`;
}

function ownerOf({ metadata }: KubeObject): ServiceAddressOwner {
  const { namespace = '', name = '' } = metadata ?? {};
  return { namespace, name };
}
