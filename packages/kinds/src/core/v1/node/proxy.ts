import type { ConnectCall, ConnectSubresource } from '@keelson/core';
import { portNumber, proxyTarget, proxyVerbs } from '../../../connect/proxy-target.ts';
import type { Node } from '../schema/index.ts';

/** Forwards HTTP requests to the agent of a node or, with a port in the name, to another server on the node. */
export const nodeProxySubresource: ConnectSubresource = {
  type: 'connect',
  name: 'proxy',
  verbs: proxyVerbs,
  optionsKind: { group: '', version: 'v1', kind: 'NodeProxyOptions' },
  parameters: [],
  tail: true,
  upgrades: true,
  parentName: (text) => proxyTarget('node', text).name,
  locate({ parent, name, path, query }: ConnectCall<Node>) {
    const wanted = proxyTarget('node', name);
    const node = wanted.name;
    const port = wanted.port === '' ? undefined : portNumber('node', wanted.port);
    if (port === undefined || port === parent.status?.daemonEndpoints?.kubeletEndpoint?.Port) {
      return { to: 'agent', node, path, query, proxied: true };
    }
    return { to: 'node', node, port, scheme: wanted.scheme === 'https' ? 'https' : 'http', path, query };
  },
};
