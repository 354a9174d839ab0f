import { missingIsUndefined } from '@keelson/client';
import { type ApiClient, isIP, statusErrors } from '@keelson/core';
import { EndpointSlice, Endpoints, Service } from '@keelson/kinds';

/** The address at which this server reaches a service of the cluster. */
export interface ServiceAddress {
  readonly host: string;
  readonly port: number;
}

/** Selects the address for one connection to a service. */
export type ResolveService = (namespace: string, name: string, port: number) => Promise<ServiceAddress>;

/** Option for reads from the cache. Outdated data is acceptable, because each connection resolves the service again. */
const cached = { resourceVersion: '0' } as const;

/**
 * Resolves services of the cluster to one of their ready endpoints, because cluster IPs may not be reachable from this
 * server. An `ExternalName` service is resolved to its external name.
 *
 * @throws StatusError 404 without the service, 503 without a port or endpoint
 */
export function serviceResolver(client: ApiClient, random: () => number = Math.random): ResolveService {
  return async (namespace, name, port) => {
    const services = client.resource(Service).namespace(namespace);
    const service =
      (await services.get(name, cached).catch(missingIsUndefined)) ??
      (await services.get(name).catch(missingIsUndefined));
    if (service === undefined) throw statusErrors.notFound({ group: '', resource: 'service' }, name);
    const { type = 'ClusterIP', externalName = '', ports = [] } = service.spec;
    if (type === 'ExternalName') return { host: externalName, port };
    const wanted = ports.find((one) => one.port === port);
    if (wanted === undefined)
      throw statusErrors.serviceUnavailable(`no service port ${port} found for service ${JSON.stringify(name)}`);
    const found = await endpointsOf(client, namespace, name, wanted.name ?? '');
    const chosen = found[Math.floor(random() * found.length)];
    if (chosen === undefined)
      throw statusErrors.serviceUnavailable(`no endpoints available for service ${JSON.stringify(name)}`);
    return chosen;
  };
}

/** The ready endpoints of a port, from EndpointSlices; from Endpoints when the service has no slices. */
async function endpointsOf(
  client: ApiClient,
  namespace: string,
  service: string,
  portName: string,
): Promise<ServiceAddress[]> {
  const labelSelector = `kubernetes.io/service-name=${service}`;
  const slices = await client
    .resource(EndpointSlice)
    .namespace(namespace)
    .list({ labelSelector, ...cached });
  const found = slices.items.flatMap(({ addressType, endpoints = [], ports = [] }) => {
    const port = ports.find(({ name }) => (name ?? '') === portName)?.port;
    if (port === undefined || addressType === 'FQDN') return [];
    const ready = endpoints.filter(({ conditions }) => conditions?.ready !== false);
    return ready.flatMap(({ addresses }) => addresses.map((host) => ({ host, port })));
  });
  if (found.length > 0 || slices.items.length > 0) return found;
  const endpoints = await client
    .resource(Endpoints)
    .namespace(namespace)
    .get(service, cached)
    .catch(missingIsUndefined);
  return (endpoints?.subsets ?? []).flatMap(({ addresses = [], ports = [] }) => {
    const port = ports.find(({ name }) => (name ?? '') === portName)?.port;
    return port === undefined ? [] : addresses.filter(({ ip }) => isIP(ip)).map(({ ip }) => ({ host: ip, port }));
  });
}
