import { type ControllerDefinition, ownerReference, type ReconcileRun, relatedKind } from '@keelson/controller-kit';
import { EndpointSlice, Node, Pod, Service } from '@keelson/kinds';
import { podsByNode } from '../workload/pod-state.ts';
import { type Endpoint, EndpointGroups, writeSlices } from './endpoint-slices.ts';
import {
  addressesOf,
  hasSelector,
  hostnameOf,
  isReady,
  isTerminating,
  labelsOfEndpoints,
  lastChange,
  podReference,
  podsOf,
  portsAt,
  servicesOf,
  triggerTime,
} from './pod-endpoints.ts';

const managedBy = 'endpointslice-controller.k8s.io';
/** Values of `trafficDistribution` that prefer the endpoints of the zone of a client. */
const zonePreferences: ReadonlySet<string> = new Set(['PreferClose', 'PreferSameZone', 'PreferSameNode']);

/** Writes the EndpointSlices of services with a selector. */
export const endpointSliceController: ControllerDefinition<Service> = {
  name: 'endpointslice-controller',
  eventSource: 'endpoint-slice-controller',
  kind: Service,
  owns: [EndpointSlice],
  related: [
    relatedKind(Pod, servicesOf),
    relatedKind(Node, (node, before, read) => {
      if (zoneOf(node) === zoneOf(before)) return [];
      const pods = read(Pod).by(podsByNode, node.metadata?.name ?? '');
      return [...new Set(pods.flatMap((pod) => servicesOf(pod, undefined, read)))];
    }),
  ],
  workers: 5,
  reconcile,
};

async function reconcile(service: Service, run: ReconcileRun): Promise<undefined> {
  const { namespace = '', name = '' } = service.metadata ?? {};
  // The slices of a service that loses its selector are left to its user.
  if (service.metadata?.deletionTimestamp !== undefined || !hasSelector(service)) return;
  const pods = podsOf(service, run.read(Pod).inNamespace(namespace));
  const groups = new EndpointGroups();
  for (const family of service.spec.ipFamilies ?? ['IPv4']) {
    for (const pod of pods) {
      const addresses = addressesOf(pod, family);
      if (addresses.length > 0) groups.add(family, portsAt(pod, service), endpointOf(pod, service, addresses, run));
    }
    // An empty slice states that the service has been processed.
    if (!groups.has(family)) groups.add(family, []);
  }
  const time = lastChange(service, pods);
  await writeSlices(run, {
    namespace,
    service: name,
    managedBy,
    owner: ownerReference(Service, service),
    labels: labelsOfEndpoints(service),
    annotations: time === undefined ? {} : { [triggerTime]: time },
    groups: groups.values(),
  });
}

/** An empty label states no zone. */
function zoneOf(node: Node | undefined): string | undefined {
  return node?.metadata?.labels?.['topology.kubernetes.io/zone'] || undefined;
}

function endpointOf(pod: Pod, service: Service, addresses: readonly string[], { read }: ReconcileRun): Endpoint {
  const serving = isReady(pod);
  const terminating = isTerminating(pod);
  const ready = service.spec.publishNotReadyAddresses === true || (serving && !terminating);
  const hostname = hostnameOf(pod, service);
  const { nodeName } = pod.spec;
  const zone = nodeName ? zoneOf(read(Node).get(nodeName)) : undefined;
  const hints = ready ? hintsOf(service, zone, nodeName) : undefined;
  return {
    addresses: [...addresses],
    conditions: { ready, serving, terminating },
    ...(hostname === undefined ? {} : { hostname }),
    targetRef: podReference(pod),
    ...(nodeName ? { nodeName } : {}),
    ...(zone === undefined ? {} : { zone }),
    ...(hints === undefined ? {} : { hints }),
  };
}

/** The clients that should use an endpoint: those of its zone, and with PreferSameNode first those of its node. */
function hintsOf({ spec }: Service, zone: string | undefined, nodeName: string | undefined): Endpoint['hints'] {
  const { trafficDistribution = '' } = spec;
  if (!zonePreferences.has(trafficDistribution)) return undefined;
  const forNodes = nodeName && trafficDistribution === 'PreferSameNode' ? [{ name: nodeName }] : undefined;
  if (zone === undefined && forNodes === undefined) return undefined;
  return { ...(zone === undefined ? {} : { forZones: [{ name: zone }] }), ...(forNodes && { forNodes }) };
}
