import type { ConnectCall, ConnectLocation, ConnectParameter, ConnectSubresource } from '@keelson/core';
import { pathOf, queryText, switchedOn } from '../../../connect/query.ts';
import type { Pod } from '../schema/index.ts';
import { containerChoice, hostOf } from './container-choice.ts';

const streamParameters: readonly ConnectParameter[] = [
  { name: 'container', type: 'string', description: 'The container; needed when the pod has several.' },
  { name: 'stderr', type: 'boolean', description: 'Sends what is written to the standard error.' },
  { name: 'stdin', type: 'boolean', description: 'Passes the standard input on.' },
  { name: 'stdout', type: 'boolean', description: 'Sends what is written to the standard output.' },
  { name: 'tty', type: 'boolean', description: 'Gives the command a terminal.' },
];

/** `exec` and `attach` differ in the command alone. */
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
    { name: 'command', type: 'strings', description: 'The command, one word each; no shell reads it.' },
  ],
  upgrades: true,
  locate: (call: ConnectCall<Pod>) => containerStreams(call, 'exec'),
};

/** Joins the streams of the process that a container runs. */
export const attachSubresource: ConnectSubresource = {
  type: 'connect',
  name: 'attach',
  verbs: ['create', 'get'],
  optionsKind: { group: '', version: 'v1', kind: 'PodAttachOptions' },
  parameters: streamParameters,
  upgrades: true,
  locate: (call: ConnectCall<Pod>) => containerStreams(call, 'attach'),
};

/** Carries connections to ports of a pod. */
export const portForwardSubresource: ConnectSubresource = {
  type: 'connect',
  name: 'portforward',
  verbs: ['create', 'get'],
  optionsKind: { group: '', version: 'v1', kind: 'PodPortForwardOptions' },
  parameters: [{ name: 'ports', type: 'ports', description: 'Ports, needed over WebSocket.' }],
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
