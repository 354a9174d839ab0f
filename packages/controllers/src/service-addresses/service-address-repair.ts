import { ApiEventRecorder } from '@keelson/client';
import type { Service as RunningService } from '@keelson/core/runtime';
import { Service } from '@keelson/kinds';
import type { ControllerOptions } from '../controller-options.ts';

/** The allocated resource of a service: a cluster IP, or a node port. */
export type AddressKind = 'address' | 'port';

/** The service to which a cluster IP or a node port is allocated. */
export interface ServiceAddressOwner {
  readonly namespace: string;
  readonly name: string;
}

/** The allocation record of a cluster IP or a node port. */
export interface ServiceAddressClaim extends ServiceAddressOwner {
  readonly kind: AddressKind;
  readonly value: string;
  /** Identifies the state of the record: it changes with each write. */
  readonly revision: string;
}

/** Access to the allocation records of a server, and to the addresses and ports of services. */
export interface ServiceAddressRecords {
  /** Called before each pass. */
  prepare(): Promise<void>;
  list(kind: AddressKind): Promise<readonly ServiceAddressClaim[]>;
  /** Records an allocation. Returns false when the value is already allocated. */
  claim(kind: AddressKind, value: string, owner: ServiceAddressOwner): Promise<boolean>;
  /** Removes a record unless it has changed. */
  remove(claim: ServiceAddressClaim): Promise<void>;
  valuesOf(service: Service): readonly { readonly kind: AddressKind; readonly value: string }[];
  inRange(kind: AddressKind, value: string): Promise<boolean>;
}

export interface ServiceAddressRepairOptions extends ControllerOptions {
  readonly records: ServiceAddressRecords;
}

/** Interval of the passes, as in kube-apiserver. */
const periodMs = 180_000;
const pageSize = 500;
const eventLimit = { qps: 5, burst: 50 } as const;

/** Reasons and texts of events are those of kube-apiserver. */
const reports = {
  address: {
    missing: ['ClusterIPNotAllocated', (value: string) => `Cluster IP ${value} is not allocated; repairing`],
    repeated: [
      'ClusterIPAlreadyAllocated',
      (value: string) => `Cluster IP ${value} was assigned to multiple services; please recreate service`,
    ],
    outside: [
      'ClusterIPOutOfRange',
      (value: string) => `Cluster IP ${value} is not within the service CIDR; please recreate service`,
    ],
  },
  port: {
    missing: ['PortNotAllocated', (value: string) => `Port ${value} is not allocated; repairing`],
    repeated: [
      'PortAlreadyAllocated',
      (value: string) => `Port ${value} was assigned to multiple services; please recreate service`,
    ],
    outside: [
      'PortOutOfRange',
      (value: string) => `Port ${value} is not within the port range; please recreate service`,
    ],
  },
} as const;
type Problem = keyof (typeof reports)['address'];

/**
 * Compares the allocation records of cluster IPs and node ports with the services. Values of services without a record
 * are recorded. Duplicate values and values outside of the configured ranges are reported. Values without a service are
 * released when two passes have found the same record, because the service of a new record may not be stored yet. All
 * servers of a store may run this comparison at the same time.
 */
export class ServiceAddressRepair implements RunningService {
  readonly name = 'service-address-repair';
  readonly #options: ServiceAddressRepairOptions;
  readonly #events: ApiEventRecorder;
  /** Revisions of the records that had no service in the previous pass, by kind and value. */
  #unused = new Map<string, string>();
  /** Reported problems, so that an event is not repeated by each pass. */
  #reported = new Set<string>();
  #cancel: () => void = () => {};
  #stopped = false;
  #pass: Promise<void> = Promise.resolve();

  constructor(options: ServiceAddressRepairOptions) {
    this.#options = options;
    this.#events = new ApiEventRecorder({ ...options, ...eventLimit, source: { component: this.name } });
  }

  /** Resolves after the first pass, so that values of stored services are recorded before others are created. */
  async start(): Promise<void> {
    this.#run();
    await this.#pass;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    await this.#pass;
    await this.#events.stop();
  }

  #run(): void {
    if (this.#stopped) return;
    const { clock, logger } = this.#options;
    this.#pass = this.repair()
      .catch((err: unknown) => logger.warn('addresses of services could not be checked', { err }))
      .finally(() => {
        if (!this.#stopped) this.#cancel = clock.after(periodMs, () => this.#run());
      });
  }

  /** Compares all records with all services once. */
  async repair(): Promise<void> {
    const { records, logger } = this.#options;
    await records.prepare();
    // Records are read before services. The service of each record is therefore stored already, or still being stored.
    const claims = new Map<string, ServiceAddressClaim>();
    for (const kind of ['address', 'port'] as const)
      for (const claim of await records.list(kind)) claims.set(`${kind}/${claim.value}`, claim);
    const owners = new Map<string, { service: Service; kind: AddressKind; value: string }[]>();
    for await (const service of this.#services())
      for (const { kind, value } of records.valuesOf(service)) {
        const id = `${kind}/${value}`;
        owners.set(id, [...(owners.get(id) ?? []), { service, kind, value }]);
      }
    const reported = new Set<string>();
    for (const [id, holders] of owners) await this.#check(claims.get(id), holders, reported);
    this.#reported = reported;
    const unused = new Map<string, string>();
    for (const [id, claim] of claims) {
      if (owners.has(id)) continue;
      if (this.#unused.get(id) === claim.revision) {
        logger.warn('an address without a service was released', { kind: claim.kind, value: claim.value });
        await records.remove(claim);
      } else unused.set(id, claim.revision);
    }
    this.#unused = unused;
  }

  async *#services(): AsyncGenerator<Service> {
    const services = this.#options.client.resource(Service);
    let token: string | undefined;
    do {
      const page = await services.list({ limit: pageSize, ...(token ? { continue: token } : {}) });
      yield* page.items;
      token = page.metadata?.continue;
    } while (token);
  }

  async #check(
    claim: ServiceAddressClaim | undefined,
    holders: readonly { service: Service; kind: AddressKind; value: string }[],
    reported: Set<string>,
  ): Promise<void> {
    const { records } = this.#options;
    const [first] = holders;
    if (first === undefined) return;
    const { kind, value } = first;
    const claimed = holders.find(
      ({ service: { metadata } }) => metadata?.namespace === claim?.namespace && metadata?.name === claim?.name,
    );
    const owner = claimed ?? first;
    if (!(await records.inRange(kind, value)))
      for (const { service } of holders) await this.#report('outside', kind, value, service, reported);
    else if (claimed === undefined) {
      // The service that the record names does not exist, or no longer has this value.
      if (claim !== undefined) await records.remove(claim);
      const { namespace = '', name = '' } = owner.service.metadata ?? {};
      if (await records.claim(kind, value, { namespace, name }))
        await this.#report('missing', kind, value, owner.service, reported);
    }
    for (const holder of holders)
      if (holder !== owner) await this.#report('repeated', kind, value, holder.service, reported);
  }

  async #report(
    problem: Problem,
    kind: AddressKind,
    value: string,
    { metadata }: Service,
    reported: Set<string>,
  ): Promise<void> {
    const { logger } = this.#options;
    const [reason, text] = reports[kind][problem];
    const { namespace = '', name = '', uid = '', resourceVersion = '' } = metadata ?? {};
    const id = `${uid}/${reason}/${value}`;
    reported.add(id);
    if (this.#reported.has(id)) return;
    const message = text(value);
    logger.warn(message, { service: `${namespace}/${name}`, reason });
    this.#events.record(
      { apiVersion: 'v1', kind: 'Service', namespace, name, uid, resourceVersion },
      'Warning',
      reason,
      message,
    );
  }
}
