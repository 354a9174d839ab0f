import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { SecureContextOptions, Server as TlsServer } from 'node:tls';
import { declineUpgradesWithBody } from '@keelson/core/runtime';
import type { AgentListener } from './router.ts';

/** TLS settings of a server. */
export interface TlsSettings {
  readonly certificate: string;
  readonly key: string;
  /** Authorities of client certificates; undefined: client certificates are not requested. */
  readonly clientCa: Buffer | undefined;
}

export interface ListenOptions {
  readonly address: string;
  /** 0 = assigned by the operating system. */
  readonly port: number;
  readonly listener: AgentListener;
  readonly tls?: TlsSettings;
}

export interface Listening {
  readonly port: number;
  /** Serves a certificate to new connections; for servers with TLS. */
  setCertificate(pair: { readonly certificate: string; readonly key: string }): void;
  /** Accepts no new connections and closes the existing ones. */
  close(): Promise<void>;
}

const limits = { maxHeaderSize: 16_384, headersTimeout: 10_000, requestTimeout: 60_000, keepAliveTimeout: 60_000 };
/** An agent has few clients. */
const maxConnections = 1000;

/** The settings that can be replaced while the server runs. */
function contextOf({ certificate, key, clientCa }: TlsSettings): SecureContextOptions {
  return { cert: certificate, key, minVersion: 'TLSv1.2', ...(clientCa === undefined ? {} : { ca: clientCa }) };
}

function create(listener: AgentListener, tls: TlsSettings | undefined): Server {
  if (tls === undefined) return createServer(limits, (incoming, response) => listener(incoming, response));
  return createTlsServer(
    {
      ...limits,
      ...contextOf(tls),
      // An invalid certificate is answered 401, which is more informative than a failed handshake.
      ...(tls.clientCa === undefined ? {} : { requestCert: true, rejectUnauthorized: false }),
    },
    (incoming, response) => listener(incoming, response),
  );
}

/** Passes an upgrade request to the listener like any other, with a response object for an HTTP answer. */
function onUpgrade(listener: AgentListener, incoming: IncomingMessage, socket: Socket, head: Buffer): void {
  socket.on('error', () => {});
  const response = new ServerResponse(incoming);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  response.once('finish', () => socket.destroySoon());
  listener(incoming, response, { socket, head });
}

/** Serves HTTP, or HTTPS with `tls`. Rejects with the error of the system call when the address is in use. */
export async function listen({ address, port, listener, tls }: ListenOptions): Promise<Listening> {
  const server = create(listener, tls);
  declineUpgradesWithBody(server);
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
    setCertificate: ({ certificate, key }) =>
      (server as Server & Pick<TlsServer, 'setSecureContext'>).setSecureContext({
        ...contextOf({ certificate, key, clientCa: tls?.clientCa }),
      }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
