import { isDeepStrictEqual } from 'node:util';
import type { ReconcileRun } from '@keelson/controller-kit';
import { isStatusError, type ObjectMeta, type OwnerReference, StatusReason } from '@keelson/core';
import { EndpointSlice } from '@keelson/kinds';
import { type PortOfEndpoints, triggerTime } from './pod-endpoints.ts';

export const serviceNameLabel = 'kubernetes.io/service-name';
export const managedByLabel = 'endpointslice.kubernetes.io/managed-by';
/** Maximum number of endpoints of a slice, as in Kubernetes. A change of one endpoint thus remains a small write. */
const smallSlice = 100;

export type Endpoint = EndpointSlice['endpoints'][number];

/** Endpoints with the same type of address and the same ports; they share slices. */
export interface EndpointGroup {
  readonly addressType: string;
  readonly ports: readonly PortOfEndpoints[];
  readonly endpoints: readonly Endpoint[];
}

/** The slices that a controller wants for a service. */
export interface WantedSlices {
  readonly namespace: string;
  readonly service: string;
  readonly managedBy: string;
  readonly owner: OwnerReference;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** At most one group per address type and ports. A group without endpoints keeps one empty slice. */
  readonly groups: readonly EndpointGroup[];
  /** Maximum number of endpoints of a slice. Default 100. */
  readonly maxEndpoints?: number;
}

/** Collects endpoints in groups by address type and ports. */
export class EndpointGroups {
  readonly #groups = new Map<
    string,
    { addressType: string; ports: readonly PortOfEndpoints[]; endpoints: Endpoint[] }
  >();

  add(addressType: string, ports: readonly PortOfEndpoints[], endpoint?: Endpoint): void {
    const key = groupKey(addressType, ports);
    const group = this.#groups.get(key) ?? { addressType, ports, endpoints: [] };
    this.#groups.set(key, group);
    if (endpoint !== undefined) group.endpoints.push(endpoint);
  }

  has(addressType: string): boolean {
    return [...this.#groups.values()].some((group) => group.addressType === addressType);
  }

  values(): EndpointGroup[] {
    return [...this.#groups.values()];
  }
}

/** Identifies a type of address and a set of ports, whatever their order. */
export function groupKey(addressType: string, ports: EndpointSlice['ports'] | readonly PortOfEndpoints[]): string {
  const texts = (ports ?? []).map(({ name, protocol, port, appProtocol }) => [
    name ?? '',
    protocol ?? 'TCP',
    port,
    appProtocol,
  ]);
  return JSON.stringify([addressType, texts.map((text) => JSON.stringify(text)).sort()]);
}

/** The identity of an endpoint, which does not depend on its state. */
function identity({ addresses, targetRef }: Endpoint): string {
  return `${targetRef?.uid ?? ''}/${addresses.join()}`;
}

/** The planned endpoints of an existing or a new slice. */
interface Plan {
  readonly existing: EndpointSlice | undefined;
  readonly endpoints: Endpoint[];
}

/**
 * Writes the slices of a service. Endpoints remain in the slice in which they are, so that a change of one writes one
 * slice; new ones fill the slices that have room.
 */
export async function writeSlices(run: ReconcileRun, wanted: WantedSlices): Promise<void> {
  const existing = run
    .read(EndpointSlice)
    .inNamespace(wanted.namespace)
    .filter(
      ({ metadata }) =>
        metadata?.labels?.[serviceNameLabel] === wanted.service &&
        metadata.labels[managedByLabel] === wanted.managedBy &&
        metadata.deletionTimestamp === undefined,
    )
    .sort((a, b) => ((a.metadata?.name ?? '') < (b.metadata?.name ?? '') ? -1 : 1));
  const slices = run.client.resource(EndpointSlice).namespace(wanted.namespace);
  const kept = new Set<EndpointSlice>();
  for (const group of wanted.groups) {
    const key = groupKey(group.addressType, group.ports);
    const own = existing.filter(({ addressType, ports }) => groupKey(addressType, ports) === key);
    for (const { existing: slice, endpoints } of planGroup(group, own, wanted.maxEndpoints ?? smallSlice)) {
      const metadata = sliceMeta(wanted, slice);
      const next: EndpointSlice = {
        metadata,
        addressType: group.addressType,
        endpoints,
        ports: [...group.ports],
      };
      if (slice === undefined) {
        await slices.create(next);
        continue;
      }
      kept.add(slice);
      if (isSame(slice, next)) continue;
      await slices.update({ ...slice, ...next });
    }
  }
  for (const slice of existing) {
    if (kept.has(slice)) continue;
    const { name = '', uid = '' } = slice.metadata ?? {};
    await slices.delete(name, { preconditions: { uid } }).catch((error: unknown) => {
      if (!isStatusError(error, StatusReason.NotFound)) throw error;
    });
  }
}

function planGroup({ endpoints }: EndpointGroup, existing: readonly EndpointSlice[], maxEndpoints: number): Plan[] {
  const missing = new Map(endpoints.map((endpoint) => [identity(endpoint), endpoint]));
  const plans: Plan[] = existing.map((slice) => {
    const kept: Endpoint[] = [];
    for (const endpoint of slice.endpoints ?? []) {
      const next = missing.get(identity(endpoint));
      if (next === undefined || kept.length === maxEndpoints) continue;
      missing.delete(identity(endpoint));
      kept.push(next);
    }
    return { existing: slice, endpoints: kept };
  });
  let target = 0;
  for (const endpoint of missing.values()) {
    while (target < plans.length && (plans[target]?.endpoints.length ?? 0) >= maxEndpoints) target++;
    if (target === plans.length) plans.push({ existing: undefined, endpoints: [] });
    plans[target]?.endpoints.push(endpoint);
  }
  const used = plans.filter((plan) => plan.endpoints.length > 0);
  return used.length > 0 ? used : [plans[0] ?? { existing: undefined, endpoints: [] }];
}

function sliceMeta(wanted: WantedSlices, slice: EndpointSlice | undefined): ObjectMeta {
  const { service, managedBy, namespace, owner, labels, annotations } = wanted;
  return {
    ...(slice?.metadata ?? { generateName: `${service}-`, namespace }),
    labels: { ...labels, [serviceNameLabel]: service, [managedByLabel]: managedBy },
    annotations: { ...annotations },
    ownerReferences: [owner],
  };
}

/** Compares the fields that a controller writes to a slice, except for the time of the last change. */
function isSame(a: EndpointSlice, b: EndpointSlice): boolean {
  const form = ({ metadata, endpoints, ports }: EndpointSlice) => {
    const { [triggerTime]: _, ...annotations } = metadata?.annotations ?? {};
    return {
      labels: metadata?.labels ?? {},
      annotations,
      owners: metadata?.ownerReferences?.map(({ uid }) => uid),
      endpoints: endpoints ?? [],
      ports: ports ?? [],
    };
  };
  return isDeepStrictEqual(plain(form(a)), plain(form(b)));
}

/** A copy of a JSON value without properties that are undefined. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown;
}
