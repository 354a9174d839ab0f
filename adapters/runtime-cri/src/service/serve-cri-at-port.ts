import { ServerCredentials } from '@grpc/grpc-js';
import type { ContainerEngine } from '@keelson/container-runtime';
import { type Logger, silentLogger } from '@keelson/core';
import type { PinnedTls } from '../connection/pinned-tls.ts';
import { createCriServer } from './cri-server.ts';
import { openTlsDoor } from './door/tls-door.ts';
import { StreamServer } from './streams/stream-server.ts';

export interface CriPortOptions {
  /** What the calls are about; it stays the caller's. */
  readonly engine: ContainerEngine;
  /** An address of this machine, such as `127.0.0.1` or `::1`. */
  readonly host: string;
  /** 0: the system chooses. */
  readonly port: number;
  /** Whoever has the key of `peer` may do anything; nobody else may do something. */
  readonly tls: PinnedTls;
  readonly logger?: Logger;
}

/** A service that listens. */
export interface CriPortHandle extends AsyncDisposable {
  /** As {@link createCriRuntime} takes it. */
  readonly endpoint: string;
}

/**
 * Serves an engine as CRI v1 at a TCP port with TLS in which each end has one certificate of the other pinned. Streams
 * come in at the same port, by the same rule, and need their token besides.
 *
 * @throws `AlreadyExists` when somebody listens there; the system's error for an address that cannot be used
 */
export async function serveCriAtPort(options: CriPortOptions): Promise<CriPortHandle> {
  const { engine, host, tls, logger = silentLogger } = options;
  const streams = new StreamServer({ origin: () => `https://${place()}` });
  const server = createCriServer({ engine, streams, logger });
  const injector = server.grpc.createConnectionInjector(ServerCredentials.createInsecure());
  const door = await openTlsDoor({
    ...{ host, port: options.port, tls, logger },
    calls: (socket) => injector.injectConnection(socket),
    streams: (socket) => streams.connected(socket),
  });
  const place = () => `${host.includes(':') ? `[${host}]` : host}:${door.port}`;
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= (async () => {
      server.endStreams();
      await streams.close();
      await server.shutDown();
      await door.close();
    })();
    return closing;
  };
  return { endpoint: `tcp://${place()}`, [Symbol.asyncDispose]: close };
}
