import { isDeepStrictEqual } from 'node:util';
import { type ControllerDefinition, type ReconcileRun, relatedKind } from '@keelson/controller-kit';
import { isStatusError, StatusReason } from '@keelson/core';
import { Endpoints, Pod, Service } from '@keelson/kinds';
import {
  addressesOf,
  hasSelector,
  hostnameOf,
  isReady,
  isTerminating,
  labelsOfEndpoints,
  lastChange,
  type PortOfEndpoints,
  podReference,
  podsOf,
  portsAt,
  servicesOf,
  triggerTime,
} from './pod-endpoints.ts';

/**
 * Maximum number of addresses, because larger objects are slow to write and to read. EndpointSlices have no such limit.
 */
const maxAddresses = 1000;
const overCapacity = 'endpoints.kubernetes.io/over-capacity';
const managedByLabel = 'endpoints.kubernetes.io/managed-by';
const managedBy = 'endpoint-controller';

type Subset = NonNullable<Endpoints['subsets']>[number];
type Address = NonNullable<Subset['addresses']>[number];

/** Writes the Endpoints of services with a selector. */
export const endpointsController: ControllerDefinition<Service> = {
  name: 'endpoints-controller',
  eventSource: 'endpoint-controller',
  kind: Service,
  related: [
    relatedKind(Pod, servicesOf),
    relatedKind(Endpoints, ({ metadata }, _before, read) => {
      const key = `${metadata?.namespace}/${metadata?.name}`;
      // Users may create Endpoints before their service. Endpoints without a service trigger a run only if this
      // controller has written them, and the run deletes them.
      const concerns = read(Service).get(key) !== undefined || metadata?.labels?.[managedByLabel] === managedBy;
      return concerns ? [key] : [];
    }),
  ],
  workers: 5,
  reconcile,
  deleted,
};

async function reconcile(service: Service, run: ReconcileRun): Promise<undefined> {
  if (!hasSelector(service) || service.metadata?.deletionTimestamp !== undefined) return;
  const { namespace = '', name = '' } = service.metadata ?? {};
  const pods = podsOf(service, run.read(Pod).inNamespace(namespace)).filter(
    (pod) => !isTerminating(pod) || service.spec.publishNotReadyAddresses === true,
  );
  const { subsets, truncated } = limited(subsetsOf(service, pods));
  const labels = { ...labelsOfEndpoints(service), [managedByLabel]: managedBy };
  const existing = run.read(Endpoints).get(`${namespace}/${name}`);
  const before = existing?.metadata;
  const same =
    existing !== undefined &&
    isDeepStrictEqual(plain(existing.subsets ?? []), plain(subsets)) &&
    isDeepStrictEqual(before?.labels ?? {}, labels) &&
    (before?.annotations?.[overCapacity] !== undefined) === truncated;
  if (same) return;
  const { [overCapacity]: _, ...annotations } = before?.annotations ?? {};
  const time = lastChange(service, pods);
  if (time !== undefined) annotations[triggerTime] = time;
  if (truncated) annotations[overCapacity] = 'truncated';
  const endpoints = run.client.resource(Endpoints).namespace(namespace);
  const next = { metadata: { ...(before ?? { name, namespace }), labels, annotations }, subsets };
  if (existing === undefined) await endpoints.create(next);
  else await endpoints.update(next);
}

/** Deletes the Endpoints of a deleted service. They have no owner, because users may create them before the service. */
async function deleted({ key, client, read }: ReconcileRun): Promise<undefined> {
  if (read(Endpoints).get(key) === undefined) return;
  const [namespace = '', name = ''] = key.split('/');
  await client
    .resource(Endpoints)
    .namespace(namespace)
    .delete(name)
    .catch((error: unknown) => {
      if (!isStatusError(error, StatusReason.NotFound)) throw error;
    });
}

/** Pods with the same ports share a subset. */
function subsetsOf(service: Service, pods: readonly Pod[]): Subset[] {
  const subsets = new Map<string, { ready: Address[]; waiting: Address[]; ports: readonly PortOfEndpoints[] }>();
  const headless = service.spec.clusterIP === 'None';
  for (const pod of pods) {
    const ports = portsAt(pod, service);
    if (ports.length === 0 && !(headless && (service.spec.ports ?? []).length === 0)) continue;
    const [ip] = addressesOf(pod, service.spec.ipFamilies?.[0] ?? 'IPv4');
    if (ip === undefined) continue;
    const hostname = hostnameOf(pod, service);
    const { nodeName } = pod.spec;
    const address: Address = {
      ip,
      ...(hostname === undefined ? {} : { hostname }),
      ...(nodeName ? { nodeName } : {}),
      targetRef: podReference(pod),
    };
    const key = JSON.stringify(ports);
    const subset = subsets.get(key) ?? { ready: [], waiting: [], ports };
    subsets.set(key, subset);
    const ready = service.spec.publishNotReadyAddresses === true || isReady(pod);
    (ready ? subset.ready : subset.waiting).push(address);
  }
  return [...subsets.entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { ready, waiting, ports }]) => ({
      ...(ready.length > 0 ? { addresses: sorted(ready) } : {}),
      ...(waiting.length > 0 ? { notReadyAddresses: sorted(waiting) } : {}),
      ...(ports.length > 0
        ? { ports: ports.map(({ name, ...port }) => (name === '' ? port : { name, ...port })) }
        : {}),
    }));
}

function sorted(addresses: Address[]): Address[] {
  const text = ({ ip, targetRef }: Address) => `${ip} ${targetRef?.uid ?? ''}`;
  return addresses.sort((a, b) => (text(a) < text(b) ? -1 : 1));
}

/** At most 1000 addresses, ready ones first. */
function limited(subsets: readonly Subset[]): { subsets: Subset[]; truncated: boolean } {
  let room = maxAddresses;
  let truncated = false;
  const take = (addresses: readonly Address[] | undefined): Address[] => {
    const taken = (addresses ?? []).slice(0, room);
    room -= taken.length;
    if (taken.length < (addresses?.length ?? 0)) truncated = true;
    return taken;
  };
  const ready = subsets.map(({ addresses }) => take(addresses));
  const waiting = subsets.map(({ notReadyAddresses }) => take(notReadyAddresses));
  const kept = subsets.flatMap(({ ports }, i): Subset[] => {
    const [addresses = [], notReadyAddresses = []] = [ready[i], waiting[i]];
    if (addresses.length + notReadyAddresses.length === 0) return [];
    return [
      {
        ...(addresses.length > 0 ? { addresses } : {}),
        ...(notReadyAddresses.length > 0 ? { notReadyAddresses } : {}),
        ...(ports ? { ports } : {}),
      },
    ];
  });
  return { subsets: kept, truncated };
}

function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown;
}
