import { type ControllerDefinition, ownerReference, type ReconcileRun, relatedKind } from '@keelson/controller-kit';
import { EndpointSlice, Pod, Service } from '@keelson/kinds';
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

/** Writes the EndpointSlices of services with a selector. */
export const endpointSliceController: ControllerDefinition<Service> = {
  name: 'endpointslice-controller',
  eventSource: 'endpoint-slice-controller',
  kind: Service,
  owns: [EndpointSlice],
  related: [relatedKind(Pod, servicesOf)],
  workers: 5,
  reconcile,
};

async function reconcile(service: Service, run: ReconcileRun): Promise<undefined> {
  const { namespace = '', name = '' } = service.metadata ?? {};
  if (service.metadata?.deletionTimestamp !== undefined) return;
  const pods = hasSelector(service) ? podsOf(service, run.read(Pod).inNamespace(namespace)) : [];
  const groups = new EndpointGroups();
  const families = hasSelector(service) ? (service.spec.ipFamilies ?? ['IPv4']) : [];
  for (const family of families) {
    for (const pod of pods) {
      const addresses = addressesOf(pod, family);
      if (addresses.length > 0) groups.add(family, portsAt(pod, service), endpointOf(pod, service, addresses));
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

function endpointOf(pod: Pod, service: Service, addresses: readonly string[]): Endpoint {
  const serving = isReady(pod);
  const terminating = isTerminating(pod);
  const ready = service.spec.publishNotReadyAddresses === true || (serving && !terminating);
  const hostname = hostnameOf(pod, service);
  const { nodeName } = pod.spec;
  return {
    addresses: [...addresses],
    conditions: { ready, serving, terminating },
    ...(hostname === undefined ? {} : { hostname }),
    targetRef: podReference(pod),
    ...(nodeName ? { nodeName } : {}),
  };
}
