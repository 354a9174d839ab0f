import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { AgentListener } from './router.ts';

/** What a server that identifies itself needs. */
export interface TlsSettings {
  readonly certificate: string;
  readonly key: string;
  /** Authorities of client certificates; absent: none are asked for. */
  readonly clientCa: Buffer | undefined;
}

export interface ListenOptions {
  readonly address: string;
  /** 0 = one that the system chooses. */
  readonly port: number;
  readonly listener: AgentListener;
  readonly tls?: TlsSettings;
}

export interface Listening {
  readonly port: number;
  /** Takes no new connections and ends those that are there. */
  close(): Promise<void>;
}

const limits = { maxHeaderSize: 16_384, headersTimeout: 10_000, requestTimeout: 60_000, keepAliveTimeout: 60_000 };
/** One machine is asked by few; more are a flood. */
const maxConnections = 1000;

function create(listener: AgentListener, tls: TlsSettings | undefined): Server {
  if (tls === undefined) return createServer(limits, (incoming, response) => listener(incoming, response));
  const { certificate, key, clientCa } = tls;
  return createTlsServer(
    {
      ...limits,
      cert: certificate,
      key,
      minVersion: 'TLSv1.2',
      // Whoever shows a bad certificate is answered 401, which says more than a broken handshake.
      ...(clientCa === undefined ? {} : { ca: clientCa, requestCert: true, rejectUnauthorized: false }),
    },
    (incoming, response) => listener(incoming, response),
  );
}

/** Hands a request that would be upgraded to the listener like any other, with an answer in HTTP for when it is not. */
function onUpgrade(listener: AgentListener, incoming: IncomingMessage, socket: Socket, head: Buffer): void {
  socket.on('error', () => {});
  const response = new ServerResponse(incoming);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  response.once('finish', () => socket.destroySoon());
  listener(incoming, response, { socket, head });
}

/** Serves HTTP, or HTTPS with `tls`. Fails with the system's error when the address is taken. */
export async function listen({ address, port, listener, tls }: ListenOptions): Promise<Listening> {
  const server = create(listener, tls);
  server.on('upgrade', (incoming: IncomingMessage, socket: Socket, head: Buffer) =>
    onUpgrade(listener, incoming, socket, head),
  );
  server.maxConnections = maxConnections;
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host: address }, () => {
      server.off('error', reject);
      resolve();
    });
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
