import { type Server, ServerCredentials } from '@grpc/grpc-js';
import type { ContainerEngine } from '@keelson/container-runtime';
import { type Logger, silentLogger } from '@keelson/core';
import { createCriServer } from './cri-server.ts';
import { takeSocketPlace } from './socket-place.ts';
import { StreamServer } from './streams/stream-server.ts';

export interface CriServiceOptions {
  /** What the calls are about; it stays the caller's. */
  readonly engine: ContainerEngine;
  /**
   * Absolute path of the unix socket; the folder is made if it is not there. Whoever may open the socket may do
   * anything.
   */
  readonly socketPath: string;
  readonly logger?: Logger;
}

/** A service that listens. */
export interface CriServiceHandle extends AsyncDisposable {
  readonly socketPath: string;
}

/**
 * Serves an engine as CRI v1 at a unix socket, for tools such as crictl. The socket is its owner's alone; one that a
 * dead process left is replaced. Clients must send `localhost` as authority, as those of cri-tools do from 1.31 on:
 * HTTP/2 of Node refuses a path there.
 *
 * @throws `AlreadyExists` when somebody listens there; the system's error for a folder that cannot be made or written
 */
export async function serveCri({
  engine,
  socketPath,
  logger = silentLogger,
}: CriServiceOptions): Promise<CriServiceHandle> {
  const place = await takeSocketPlace(socketPath);
  const streams = new StreamServer();
  const server = createCriServer({ engine, streams, logger });
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= (async () => {
      server.endStreams();
      await place.release();
      await streams.close();
      await server.shutDown();
    })();
    return closing;
  };
  try {
    await bind(server.grpc, place.path);
    await place.publish();
  } catch (error) {
    await close();
    throw error;
  }
  return { socketPath, [Symbol.asyncDispose]: close };
}

function bind(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.bindAsync(`unix://${path}`, ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    );
  });
}
