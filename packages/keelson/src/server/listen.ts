import {
  createServer as createHttpServer,
  type ServerOptions as HttpOptions,
  type RequestListener,
  type Server,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { ListenAddress } from '../config/options.ts';
import type { Credentials } from '../tls/credentials.ts';
import { createTlsServer } from './secure-server.ts';

/**
 * Connections that may wait to be accepted; the system may allow fewer. After a restart thousands of clients come back at once, and one for
 * which there is no room tries again a second later.
 */
const backlog = 4096;

/** A listening server. */
export interface ListeningServer {
  /** Without a trailing slash. */
  readonly url: string;
  readonly port: number;
  /** Takes no new connections, ends idle ones, and resolves when the last one is gone; `deadlineMs` later the rest are cut. */
  close(deadlineMs: number): Promise<void>;
}

function create(listener: RequestListener, credentials: Credentials | undefined, options: HttpOptions): Server {
  return credentials === undefined ? createHttpServer(options, listener) : createTlsServer(listener, credentials, options);
}

/**
 * Serves HTTP, or HTTPS when there are credentials. Fails with the system's error when the address is taken.
 *
 * @param prepare called with the server before it listens
 */
export async function listenOn(
  address: ListenAddress,
  listener: RequestListener,
  credentials: Credentials | undefined,
  options: HttpOptions,
  prepare: (server: Server) => void = () => {},
): Promise<ListeningServer> {
  const server = create(listener, credentials, options);
  prepare(server);
  const sockets = new Set<Socket>();
  server.on(credentials ? 'secureConnection' : 'connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port: address.port, host: address.host, backlog }, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const { port } = server.address() as AddressInfo;
  const host = address.host.includes(':') ? `[${address.host}]` : address.host;
  return {
    url: `${credentials ? 'https' : 'http'}://${host}:${port}`,
    port,
    close: (deadlineMs) =>
      new Promise((resolve) => {
        const cut = setTimeout(() => {
          for (const socket of sockets) socket.destroy();
        }, deadlineMs);
        server.close(() => {
          clearTimeout(cut);
          resolve();
        });
        server.closeIdleConnections?.();
      }),
  };
}
