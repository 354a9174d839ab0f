import { isIPv6 } from 'node:net';
import { type ControllerDefinition, ownerReference, type ReconcileRun, relatedKind } from '@keelson/controller-kit';
import { EndpointSlice, Endpoints, Service, standardAddress } from '@keelson/kinds';
import { type Endpoint, EndpointGroups, writeSlices } from './endpoint-slices.ts';
import { hasSelector, type PortOfEndpoints, triggerTime } from './pod-endpoints.ts';

const managedBy = 'endpointslicemirroring-controller.k8s.io';
const skipLabel = 'endpointslice.kubernetes.io/skip-mirror';
const leaderAnnotation = 'control-plane.alpha.kubernetes.io/leader';
const appliedAnnotation = 'kubectl.kubernetes.io/last-applied-configuration';
/** As in Kubernetes, further addresses of a subset are not mirrored. */
const maxPerSubset = 1000;

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
  for (const { addresses = [], notReadyAddresses = [], ports = [] } of mirrored ? (endpoints.subsets ?? []) : []) {
    const all = [
      ...addresses.map((address) => ({ address, ready: true })),
      ...notReadyAddresses.map((address) => ({ address, ready: false })),
    ].slice(0, maxPerSubset);
    const own = ports.map(
      ({ name: port = '', protocol = 'TCP', appProtocol, ...rest }): PortOfEndpoints => ({
        name: port,
        port: rest.port,
        protocol,
        ...(appProtocol === undefined ? {} : { appProtocol }),
      }),
    );
    for (const { address, ready } of all) {
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
  const { [appliedAnnotation]: _applied, [triggerTime]: _time, ...kept } = annotations;
  await writeSlices(run, {
    namespace,
    service: name,
    managedBy,
    owner: ownerReference(Endpoints, endpoints),
    labels,
    annotations: kept,
    groups: groups.values(),
  });
}
