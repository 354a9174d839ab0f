import {
  createServer as createHttpServer,
  type ServerOptions as HttpOptions,
  type RequestListener,
  type Server,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Logger, silentLogger } from '@keelson/core/runtime';
import { type ConnectionLimits, connectionLimits } from '../config/connection-limits.ts';
import type { ListenAddress } from '../config/options.ts';
import { Connections } from './connections.ts';
import { createTlsServer, type ServerTls } from './secure-server.ts';

/**
 * Length of the accept queue; the system may reduce it. After a restart thousands of clients reconnect at once, and a
 * rejected client retries a second later.
 */
export const backlog = 4096;

/** A listening server. */
export interface ListeningServer {
  /** URL of the server without a trailing slash. */
  readonly url: string;
  readonly port: number;
  /** Replaces certificate, key and authorities of a TLS server for new connections. */
  setTls(tls: ServerTls): void;
  /**
   * Accepts no more connections, closes idle ones, and resolves when the last one is closed. Open connections are
   * destroyed after `deadlineMs`.
   */
  close(deadlineMs: number): Promise<void>;
}

/** A socket that listens already, for one of several threads that accept its connections. */
export interface SharedSocket {
  /** A descriptor of this process that belongs to the server, which closes it. */
  readonly descriptor: number;
}

/** Settings of a server. */
export interface ServerSettings {
  readonly http: HttpOptions;
  /** Default: the defaults of {@link ConnectionLimits}. */
  readonly limits?: Partial<ConnectionLimits> | undefined;
  readonly logger?: Logger;
  /** Called with the server before it listens. */
  readonly prepare?: (server: Server) => void;
  /** A socket that listens already. Absent: the server opens a socket itself. */
  readonly socket?: SharedSocket | undefined;
}

/** Serves HTTP, or HTTPS with `tls`. Rejects with the error of the system when the address is in use. */
export async function listenOn(
  address: ListenAddress,
  listener: RequestListener,
  tls: ServerTls | undefined,
  { http, limits: given, logger = silentLogger, prepare, socket }: ServerSettings,
): Promise<ListeningServer> {
  const limits = connectionLimits(given);
  const connections = new Connections(limits, logger);
  const { headersMs, requestMs, idleMs } = limits;
  const options: HttpOptions = {
    ...http,
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    keepAliveTimeout: idleMs,
  };
  const admitted = connections.admitted(listener);
  const secure = tls && createTlsServer(admitted, tls, options, limits);
  const server = secure?.server ?? createHttpServer(options, admitted);
  prepare?.(server);
  connections.attach(server, tls !== undefined);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(socket ? { fd: socket.descriptor } : { port: address.port, host: address.host, backlog }, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const { port } = server.address() as AddressInfo;
  const host = address.host.includes(':') ? `[${address.host}]` : address.host;
  return {
    url: `${tls ? 'https' : 'http'}://${host}:${port}`,
    port,
    setTls: (next) => secure?.setTls(next),
    close: (deadlineMs) =>
      new Promise((resolve) => {
        // Not injected: the end of connections takes real time, also under the clock of a test.
        const cut = setTimeout(() => connections.destroy(), deadlineMs);
        server.close(() => {
          clearTimeout(cut);
          resolve();
        });
        server.closeIdleConnections?.();
      }),
  };
}
