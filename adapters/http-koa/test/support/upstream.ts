import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { defineKind, type KindDefinition, optional, type SubresourceDefinition, s } from '@keelson/core';
import type { ExecutionContext } from 'ava';
import type { NodeDialer } from '../../src/index.ts';

const data = s.message('test.Pod', 'Something that runs elsewhere.', { spec: optional(2, s.raw(), 'Anything.') });

function connect(
  name: string,
  extra: Partial<Extract<SubresourceDefinition, { type: 'connect' }>>,
): SubresourceDefinition {
  return {
    type: 'connect',
    name,
    verbs: ['create', 'get'],
    optionsKind: { group: '', version: 'v1', kind: 'PodExecOptions' },
    parameters: [],
    upgrades: true,
    locate: () => ({ to: 'nothing' }),
    ...extra,
  };
}

/** A kind with every sort of connect subresource; the service of a test determines their targets. */
export const runner: KindDefinition = defineKind({
  group: '',
  version: 'v1',
  kind: 'Pod',
  schema: data,
  subresources: [
    connect('log', { verbs: ['get'], upgrades: false }),
    connect('exec', {}),
    connect('proxy', { verbs: ['create', 'delete', 'get', 'patch', 'update'], tail: true }),
  ],
});

/** A server for HTTP on a free loopback port. */
export async function httpUpstream(t: ExecutionContext, listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** A server for bytes: `serve` gets each connection with the head of its request. */
export async function rawUpstream(t: ExecutionContext, serve: (socket: Socket, head: string) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    let head = '';
    socket.on('data', function read(chunk) {
      head += chunk.toString('latin1');
      if (!head.includes('\r\n\r\n')) return;
      socket.off('data', read);
      // Bytes that follow stay buffered for the next reader.
      socket.pause();
      serve(socket, head);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** Every node has its agent at this port of the loopback interface. */
export function dialerTo(port: number): NodeDialer {
  return { agent: async () => ({ host: '127.0.0.1', port }), address: async () => '127.0.0.1' };
}

/** Forwards every request to the agent of node `n`, with the path and query of the client. */
export async function toAgent(
  ...[, , { name }, { query, path }]: [unknown, unknown, { name: string }, { query: { text: string }; path: string }]
) {
  return {
    to: 'agent',
    node: 'n',
    path: `/${name}${path === '/' ? '' : path}`,
    query: query.text,
    proxied: name === 'proxy',
  };
}

export async function textOf(message: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of message) text += String(chunk);
  return text;
}
