import {
  type ConnectCall,
  type ConnectSubresource,
  isProxyableIP,
  type StatusError,
  statusErrors,
} from '@keelson/core';
import { proxyTarget, proxyVerbs } from '../../../connect/proxy-target.ts';
import type { EndpointAddress, Endpoints, Pod, Service } from '../schema/index.ts';

const core = { group: '', version: 'v1' } as const;

interface Candidate {
  readonly address: EndpointAddress;
  readonly port: number;
}

/** Name of the port in the endpoints, for a port name or number of the service. @throws StatusError 503 */
function portName({ spec }: Service, service: string, wanted: string): string {
  if (!/^\d+$/.test(wanted)) return wanted;
  const found = spec.ports?.find(({ port }) => port === Number(wanted));
  if (found === undefined)
    throw statusErrors.serviceUnavailable(`no service port ${wanted} found for service "${service}"`);
  return found.name ?? '';
}

/** All addresses with this port, starting at a random position. */
function candidates({ subsets = [] }: Endpoints, port: string): Candidate[] {
  const all = subsets.flatMap(({ addresses = [], ports = [] }) => {
    const number = ports.find(({ name = '' }) => name === port)?.port;
    return number === undefined ? [] : addresses.map((address) => ({ address, port: number }));
  });
  // Not injected: any address is a correct choice.
  const start = Math.floor(Math.random() * all.length);
  return [...all.slice(start), ...all.slice(0, start)];
}

/**
 * Whether the address belongs to the pod that the endpoints reference. The check prevents clients with write access to
 * endpoints from directing requests of the server to arbitrary addresses.
 */
async function isOfItsPod(
  { read, parent }: ConnectCall<Service>,
  { ip, targetRef }: EndpointAddress,
): Promise<boolean> {
  const namespace = parent.metadata?.namespace ?? '';
  if (!isProxyableIP(ip) || targetRef?.kind !== 'Pod' || !targetRef.name || targetRef.namespace !== namespace)
    return false;
  const pod = (await read({ ...core, resource: 'pods' }, targetRef.name, namespace)) as Pod | undefined;
  return [pod?.status?.podIP, ...(pod?.status?.podIPs ?? []).map((one) => one.ip)].includes(ip);
}

function noEndpoints(service: string): StatusError {
  return statusErrors.serviceUnavailable(`no endpoints available for service "${service}"`);
}

/** Forwards HTTP requests to one of the pods of a service. */
export const serviceProxySubresource: ConnectSubresource = {
  type: 'connect',
  name: 'proxy',
  verbs: proxyVerbs,
  optionsKind: { group: '', version: 'v1', kind: 'ServiceProxyOptions' },
  parameters: [],
  tail: true,
  upgrades: true,
  parentName: (text) => proxyTarget('service', text).name,
  async locate(call: ConnectCall<Service>) {
    const { parent, name, path, query, read } = call;
    const wanted = proxyTarget('service', name);
    const port = portName(parent, wanted.name, wanted.port);
    const endpoints = (await read({ ...core, resource: 'endpoints' }, wanted.name, parent.metadata?.namespace)) as
      | Endpoints
      | undefined;
    for (const { address, port: number } of candidates(endpoints ?? {}, port)) {
      if (!(await isOfItsPod(call, address))) continue;
      return {
        to: 'address',
        host: address.ip,
        port: number,
        scheme: wanted.scheme === 'https' ? 'https' : 'http',
        path,
        query,
      };
    }
    throw noEndpoints(name);
  },
};
