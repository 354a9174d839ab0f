import { chmod, lstat, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { type Server, ServerCredentials } from '@grpc/grpc-js';
import { type ContainerEngine, RuntimeError } from '@keelson/container-runtime';
import { type Logger, silentLogger } from '@keelson/core';
import type { PinnedTls } from '../connection/cri-connection.ts';
import { createCriServer } from './cri-server.ts';
import { StreamServer } from './stream-handlers.ts';
import { openTlsDoor } from './tls-server.ts';

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

/** Where a server makes its socket, and how that becomes the one that clients see. */
export interface SocketPlace {
  /** The server listens here, out of everybody's reach. */
  readonly path: string;
  /** Puts the socket that is there now into its place, readable for its owner only. */
  publish(): Promise<void>;
  /** Removes the socket, unless somebody else has put another one in its place. */
  release(): Promise<void>;
}

/**
 * Prepares for a socket at a path. One that nobody listens at is replaced when the new one is ready, so that there is
 * no moment in which it is open to others.
 *
 * @throws `AlreadyExists` when somebody listens there, or something else than a socket is there; the system's errors
 */
export async function takeSocketPlace(path: string): Promise<SocketPlace> {
  const folder = dirname(path);
  await mkdir(folder, { recursive: true, mode: 0o755 });
  await refuseTaken(path);
  const workshop = await mkdtemp(join(folder, '.cri-'));
  const made = join(workshop, 's');
  let inode: bigint | undefined;
  return {
    path: made,
    publish: async () => {
      await chmod(made, 0o600);
      inode = (await lstat(made, { bigint: true })).ino;
      await rename(made, path);
      await rm(workshop, { recursive: true, force: true });
    },
    release: async () => {
      await rm(workshop, { recursive: true, force: true });
      if (inode !== undefined && (await lstat(path, { bigint: true }).catch(() => undefined))?.ino === inode)
        await rm(path, { force: true });
    },
  };
}

async function refuseTaken(path: string): Promise<void> {
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (found === undefined) return;
  if (!found.isSocket()) throw new RuntimeError('AlreadyExists', `${path} is there already and is no socket`);
  if (await somebodyListens(path)) throw new RuntimeError('AlreadyExists', `somebody listens at ${path} already`);
}

function somebodyListens(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED' || error.code === 'ENOENT') resolve(false);
      // Its queue is full: somebody is there and busy.
      else if (error.code === 'EAGAIN') resolve(true);
      else reject(error);
    });
  });
}
