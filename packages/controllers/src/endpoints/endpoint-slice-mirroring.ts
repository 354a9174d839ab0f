import { isIPv6 } from 'node:net';
import { type ControllerDefinition, ownerReference, type ReconcileRun, relatedKind } from '@keelson/controller-kit';
import { EndpointSlice, Endpoints, Service, standardAddress } from '@keelson/kinds';
import { type Endpoint, EndpointGroups, groupKey, writeSlices } from './endpoint-slices.ts';
import { hasSelector, type PortOfEndpoints, triggerTime } from './pod-endpoints.ts';

const managedBy = 'endpointslicemirroring-controller.k8s.io';
const skipLabel = 'endpointslice.kubernetes.io/skip-mirror';
const leaderAnnotation = 'control-plane.alpha.kubernetes.io/leader';
const appliedAnnotation = 'kubectl.kubernetes.io/last-applied-configuration';
/** As in Kubernetes, further addresses with the same ports are not mirrored. */
const maxPerSubset = 1000;

type Subset = NonNullable<Endpoints['subsets']>[number];

/** Writes the EndpointSlices of services without a selector, whose users write Endpoints. */
export const endpointSliceMirroring: ControllerDefinition<Endpoints> = {
  name: 'endpointslice-mirroring-controller',
  eventSource: 'endpoint-slice-mirroring-controller',
  kind: Endpoints,
  owns: [EndpointSlice],
  related: [relatedKind(Service, ({ metadata }) => [`${metadata?.namespace}/${metadata?.name}`])],
  workers: 5,
  reconcile,
};

async function reconcile(endpoints: Endpoints, run: ReconcileRun): Promise<undefined> {
  const { namespace = '', name = '', labels = {}, annotations = {} } = endpoints.metadata ?? {};
  const service = run.read(Service).get(`${namespace}/${name}`);
  const mirrored =
    service !== undefined &&
    !hasSelector(service) &&
    labels[skipLabel] !== 'true' &&
    annotations[leaderAnnotation] === undefined &&
    endpoints.metadata?.deletionTimestamp === undefined;
  const groups = new EndpointGroups();
  let skipped = 0;
  for (const { addresses = [], notReadyAddresses = [], ports = [] } of mirrored
    ? merged(endpoints.subsets ?? [])
    : []) {
    const all = [
      ...addresses.map((address) => ({ address, ready: true })),
      ...notReadyAddresses.map((address) => ({ address, ready: false })),
    ];
    skipped += Math.max(0, all.length - maxPerSubset);
    const own = ports.map(
      ({ name: port = '', protocol = 'TCP', appProtocol, ...rest }): PortOfEndpoints => ({
        name: port,
        port: rest.port,
        protocol,
        ...(appProtocol === undefined ? {} : { appProtocol }),
      }),
    );
    for (const { address, ready } of all.slice(0, maxPerSubset)) {
      const { hostname, nodeName, targetRef } = address;
      const ip = standardAddress(address.ip) ?? address.ip;
      const endpoint: Endpoint = {
        addresses: [ip],
        conditions: { ready },
        ...(hostname ? { hostname } : {}),
        ...(nodeName ? { nodeName } : {}),
        ...(targetRef ? { targetRef } : {}),
      };
      groups.add(isIPv6(ip) ? 'IPv6' : 'IPv4', own, endpoint);
    }
  }
  if (skipped > 0) {
    const text = `A max of ${maxPerSubset} addresses can be mirrored to EndpointSlices per Endpoints subset.`;
    run.event(endpoints, 'Warning', 'TooManyAddressesToMirror', `${text} ${skipped} addresses were skipped`);
  }
  const { [appliedAnnotation]: _applied, [triggerTime]: _time, ...kept } = annotations;
  await writeSlices(run, {
    namespace,
    service: name,
    managedBy,
    owner: ownerReference(Endpoints, endpoints),
    labels,
    annotations: kept,
    groups: groups.values(),
    maxEndpoints: maxPerSubset,
  });
}

/** Subsets with the same ports as one. */
function merged(subsets: readonly Subset[]): Subset[] {
  const byPorts = new Map<string, { ports: NonNullable<Subset['ports']>; all: Subset[] }>();
  for (const subset of subsets) {
    const { ports = [] } = subset;
    const key = groupKey('', ports);
    const same = byPorts.get(key) ?? { ports, all: [] };
    byPorts.set(key, same);
    same.all.push(subset);
  }
  return [...byPorts.values()].map(({ ports, all }) => ({
    ports,
    addresses: all.flatMap(({ addresses }) => addresses ?? []),
    notReadyAddresses: all.flatMap(({ notReadyAddresses }) => notReadyAddresses ?? []),
  }));
}
