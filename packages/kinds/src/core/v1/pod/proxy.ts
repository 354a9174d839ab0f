import { type ConnectCall, type ConnectSubresource, isProxyableIP, statusErrors } from '@keelson/core';
import { defaultPorts, portNumber, proxyTarget, proxyVerbs } from '../../../connect/proxy-target.ts';
import type { Pod } from '../schema/index.ts';

/** The port for a request that names none: the first port that a container declares. */
function firstPort(pod: Pod): number | undefined {
  for (const { ports } of pod.spec.containers) if (ports?.[0] !== undefined) return ports[0].containerPort;
  return undefined;
}

/** Forwards HTTP requests to a pod. */
export const podProxySubresource: ConnectSubresource = {
  type: 'connect',
  name: 'proxy',
  verbs: proxyVerbs,
  optionsKind: { group: '', version: 'v1', kind: 'PodProxyOptions' },
  parameters: [],
  tail: true,
  upgrades: true,
  parentName: (text) => proxyTarget('pod', text).name,
  locate({ parent: pod, name, path, query }: ConnectCall<Pod>) {
    const wanted = proxyTarget('pod', name);
    const scheme = wanted.scheme === 'https' ? 'https' : 'http';
    const port = wanted.port === '' ? (firstPort(pod) ?? defaultPorts[scheme]) : portNumber('pod', wanted.port);
    const host = pod.status?.podIPs?.[0]?.ip ?? pod.status?.podIP ?? '';
    if (!isProxyableIP(host)) throw statusErrors.badRequest('address not allowed');
    return { to: 'address', host, port, scheme, path, query };
  },
};
