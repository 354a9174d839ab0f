import { Informer, keyOf } from '@keelson/client';
import type { ApiClient } from '@keelson/core';
import type { Clock, Logger, Service as RunningService } from '@keelson/core/runtime';
import { EndpointSlice, Service, standardAddress } from '@keelson/kinds';

/** Options of a {@link ServiceTable}. */
export interface ServiceTableOptions {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The fields of a service that are used here. */
export interface KnownService {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly spec: Service['spec'];
}

/** One address of a service port. */
export interface Target {
  readonly address: string;
  readonly port: number;
  readonly nodeName: string | undefined;
  readonly hostname: string | undefined;
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
}

const serviceNameLabel = 'kubernetes.io/service-name';

type Slice = Pick<EndpointSlice, 'endpoints' | 'ports' | 'addressType'> & { readonly service: string };

/** The services of the cluster and their endpoints. */
export class ServiceTable implements RunningService {
  readonly name = 'service-table';
  readonly #services: Informer<Service, KnownService>;
  readonly #slices: Informer<EndpointSlice, Slice>;
  /** Keys of EndpointSlices by key of their service. */
  readonly #slicesOf = new Map<string, Set<string>>();
  readonly #listeners = new Set<() => void>();
  #scheduled = false;

  constructor({ client, clock, logger }: ServiceTableOptions) {
    const changed = () => this.#changed();
    this.#services = new Informer<Service, KnownService>({
      ...{ client: client.resource(Service), clock, logger },
      keep: ({ metadata, spec }) => ({
        namespace: metadata?.namespace ?? '',
        name: metadata?.name ?? '',
        uid: metadata?.uid ?? '',
        spec,
      }),
      handlers: { added: changed, updated: changed, deleted: changed },
    });
    this.#slices = new Informer<EndpointSlice, Slice>({
      ...{ client: client.resource(EndpointSlice), clock, logger },
      keep: ({ metadata, endpoints, ports, addressType }) => ({
        ...{ endpoints, ports: ports ?? [], addressType },
        service: `${metadata?.namespace}/${metadata?.labels?.[serviceNameLabel] ?? ''}`,
      }),
      handlers: {
        added: (slice, key) => this.#moved(key, undefined, slice.service),
        updated: (slice, before, key) => this.#moved(key, before.service, slice.service),
        deleted: (slice, key) => this.#moved(key, slice.service, undefined),
      },
    });
  }

  async start(): Promise<void> {
    await Promise.all([this.#services.start(), this.#slices.start()]);
  }

  async stop(): Promise<void> {
    this.#listeners.clear();
    await Promise.all([this.#services.stop(), this.#slices.stop()]);
  }

  /** Calls `listener` after changes; several changes of one turn of the event loop are one call. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  services(): IterableIterator<KnownService> {
    return this.#services.values();
  }

  /** A service by `namespace/name`. */
  service(key: string): KnownService | undefined {
    return this.#services.get(key);
  }

  /** The addresses of a port of a service. A port without a name has the name ''. */
  targets({ namespace, name }: KnownService, portName: string, protocol: string): Target[] {
    return this.#entries(namespace, name).flatMap(({ endpoints, ports }) => {
      const port = (ports ?? []).find((one) => (one.name ?? '') === portName && (one.protocol ?? 'TCP') === protocol);
      if (port?.port === undefined) return [];
      return endpoints.flatMap((endpoint) => targetOf(endpoint, port.port ?? 0));
    });
  }

  /** The addresses of a service whatever its ports are. */
  addresses({ namespace, name }: KnownService): Target[] {
    return this.#entries(namespace, name).flatMap(({ endpoints }) =>
      endpoints.flatMap((endpoint) => targetOf(endpoint, 0)),
    );
  }

  #entries(namespace: string, name: string): Slice[] {
    const keys = this.#slicesOf.get(`${namespace}/${name}`) ?? [];
    return [...keys].flatMap((key) => this.#slices.get(key) ?? []);
  }

  #moved(key: string, before: string | undefined, after: string | undefined): void {
    if (before !== undefined && before !== after) {
      const keys = this.#slicesOf.get(before);
      keys?.delete(key);
      if (keys?.size === 0) this.#slicesOf.delete(before);
    }
    if (after !== undefined) this.#slicesOf.set(after, (this.#slicesOf.get(after) ?? new Set()).add(key));
    this.#changed();
  }

  #changed(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      for (const listener of this.#listeners) listener();
    });
  }
}

function targetOf(endpoint: EndpointSlice['endpoints'][number], port: number): Target[] {
  const [written] = endpoint.addresses;
  if (written === undefined) return [];
  const address = standardAddress(written) ?? written;
  const { ready = true, serving = ready, terminating = false } = endpoint.conditions ?? {};
  return [{ address, port, nodeName: endpoint.nodeName, hostname: endpoint.hostname, ready, serving, terminating }];
}

/** Key of a service: `namespace/name`. */
export function serviceKey({ namespace, name }: Pick<KnownService, 'namespace' | 'name'>): string {
  return keyOf({ metadata: { namespace, name } });
}
