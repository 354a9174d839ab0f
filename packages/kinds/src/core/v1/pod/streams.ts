import {
  type ConnectCall,
  type ConnectLocation,
  type ConnectParameter,
  type ConnectSubresource,
  isProxyableIP,
  statusErrors,
} from '@keelson/core';
import { defaultPorts, portNumber, proxyTarget, proxyVerbs } from '../../../connect/proxy-target.ts';
import { pathOf, queryText, switchedOn } from '../../../connect/query.ts';
import type { Pod } from '../schema/index.ts';
import { containerChoice, hostOf } from './container-choice.ts';

const streamParameters: readonly ConnectParameter[] = [
  { name: 'container', type: 'string', description: 'Name of the container; required when the pod has several.' },
  { name: 'stderr', type: 'boolean', description: 'Connect the standard error.' },
  { name: 'stdin', type: 'boolean', description: 'Connect the standard input.' },
  { name: 'stdout', type: 'boolean', description: 'Connect the standard output.' },
  { name: 'tty', type: 'boolean', description: 'Allocate a terminal.' },
];

/** The location of `exec` and `attach` on the node agent. */
function containerStreams({ parent: pod, options }: ConnectCall<Pod>, what: 'exec' | 'attach'): ConnectLocation {
  const container = containerChoice(pod, options['container']);
  return {
    to: 'agent',
    node: hostOf(pod),
    path: pathOf(what, pod.metadata?.namespace ?? '', pod.metadata?.name ?? '', container),
    query: queryText({
      input: switchedOn(options, 'stdin'),
      output: switchedOn(options, 'stdout'),
      error: switchedOn(options, 'stderr'),
      tty: switchedOn(options, 'tty'),
      command: what === 'exec' ? options['command'] : undefined,
    }),
  };
}

/** Runs a command in a container. */
export const execSubresource: ConnectSubresource = {
  type: 'connect',
  name: 'exec',
  verbs: ['create', 'get'],
  optionsKind: { group: '', version: 'v1', kind: 'PodExecOptions' },
  parameters: [
    ...streamParameters,
    { name: 'command', type: 'strings', description: 'The command and its arguments; not run in a shell.' },
  ],
  upgrades: true,
  locate: (call: ConnectCall<Pod>) => containerStreams(call, 'exec'),
};

/** Attaches to the streams of a container's process. */
export const attachSubresource: ConnectSubresource = {
  type: 'connect',
  name: 'attach',
  verbs: ['create', 'get'],
  optionsKind: { group: '', version: 'v1', kind: 'PodAttachOptions' },
  parameters: streamParameters,
  upgrades: true,
  locate: (call: ConnectCall<Pod>) => containerStreams(call, 'attach'),
};

/** Forwards connections to ports of a pod. */
export const portForwardSubresource: ConnectSubresource = {
  type: 'connect',
  name: 'portforward',
  verbs: ['create', 'get'],
  optionsKind: { group: '', version: 'v1', kind: 'PodPortForwardOptions' },
  parameters: [{ name: 'ports', type: 'ports', description: 'Ports; required for WebSocket connections.' }],
  upgrades: true,
  locate({ parent: pod, options }: ConnectCall<Pod>) {
    const ports = options['ports'] as readonly number[] | undefined;
    return {
      to: 'agent',
      node: hostOf(pod),
      path: pathOf('portForward', pod.metadata?.namespace ?? '', pod.metadata?.name ?? ''),
      query: queryText({ port: ports?.join(',') }),
    };
  },
};

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
