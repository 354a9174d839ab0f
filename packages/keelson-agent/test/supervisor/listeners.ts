import { createServer as createHttpServer } from 'node:http';
import { createSecureServer, type ServerHttp2Session } from 'node:http2';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { createSelfSigned, type ServingPair } from '@keelson/agent';
import { systemClock } from '@keelson/core/runtime';
import type { ExecutionContext } from 'ava';
import { supervisorPair } from '../../src/supervisor/supervisor-pair.ts';
import { supervisorPlace } from '../../src/supervisor/supervisor-place.ts';

/** Listens until the test ends; returns the port. */
async function listening(t: ExecutionContext, server: Server): Promise<number> {
  const sockets = new Set<{ destroy(): void }>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** Accepts connections and sends nothing. */
export const silentPort = (t: ExecutionContext) => listening(t, createServer());

/** Speaks HTTP without TLS. */
export const plainPort = (t: ExecutionContext) =>
  listening(
    t,
    createHttpServer((_, answer) => void answer.end('hello')),
  );

/** Speaks HTTP/2 with TLS and shows a certificate; every session is given to the caller. */
export async function tlsPort(
  t: ExecutionContext,
  { key, certificate }: ServingPair,
  onSession: (session: ServerHttp2Session) => void = () => {},
) {
  const server = createSecureServer({ key, cert: certificate });
  server.on('session', onSession);
  server.on('sessionError', () => {});
  server.on('tlsClientError', () => {});
  return listening(t, server);
}

export const pairOf = (rootDir: string) => supervisorPair(supervisorPlace(rootDir));

/** What another program may present. */
export const otherPair = () => createSelfSigned(['impostor'], systemClock.now());
