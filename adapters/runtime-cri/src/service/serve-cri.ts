import { chmod, lstat, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { type Server, ServerCredentials } from '@grpc/grpc-js';
import { type ContainerEngine, RuntimeError } from '@keelson/container-runtime';
import { type Logger, silentLogger } from '@keelson/core/runtime';
import type { PinnedTls } from '../connection/cri-connection.ts';
import { createCriServer } from './cri-server.ts';
import { StreamServer } from './stream-handlers.ts';
import { listenTls } from './tls-listener.ts';

export interface CriServiceOptions {
  /** The engine that handles the calls. The caller disposes of it. */
  readonly engine: ContainerEngine;
  /**
   * Absolute path of the unix socket; a missing folder is created. A process with access to the socket has full control
   * of the engine.
   */
  readonly socketPath: string;
  readonly logger?: Logger;
}

/** A running service at a unix socket. */
export interface CriServiceHandle extends AsyncDisposable {
  readonly socketPath: string;
}

/**
 * Serves an engine as CRI v1 at a unix socket, for clients such as crictl. Only the owner can access the socket; the
 * socket of an ended process is replaced. Clients must send `localhost` as HTTP/2 authority, as cri-tools does since
 * 1.31: Node rejects requests whose authority is the path of the socket.
 *
 * @throws `AlreadyExists` when another process listens at the path; the error of the file system when the folder cannot
 * be created or written
 */
export async function serveCri({
  engine,
  socketPath,
  logger = silentLogger,
}: CriServiceOptions): Promise<CriServiceHandle> {
  const socket = await prepareSocket(socketPath);
  const streams = new StreamServer();
  const server = createCriServer({ engine, streams, logger });
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= (async () => {
      server.endStreams();
      await socket.release();
      await streams.close();
      await server.shutDown();
    })();
    return closing;
  };
  try {
    await bind(server.grpc, socket.path);
    await socket.publish();
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
  /** The engine that handles the calls. The caller disposes of it. */
  readonly engine: ContainerEngine;
  /** An address of this machine, such as `127.0.0.1` or `::1`. */
  readonly host: string;
  /** TCP port to listen at; 0 selects a free port. */
  readonly port: number;
  /** A client with the key of `peer` has full control of the engine; all other clients are rejected. */
  readonly tls: PinnedTls;
  readonly logger?: Logger;
}

/** A running service at a TCP port. */
export interface CriPortHandle extends AsyncDisposable {
  /** The `endpoint` option of {@link createCriRuntime}. */
  readonly endpoint: string;
}

/**
 * Serves an engine as CRI v1 at a TCP port with mutual TLS, where each end has pinned the certificate of the other end.
 * Streams use the same port and TLS, and additionally require their token.
 *
 * @throws `AlreadyExists` when another process listens at the port; the error of the system when the address is not
 * available
 */
export async function serveCriAtPort(options: CriPortOptions): Promise<CriPortHandle> {
  const { engine, host, tls, logger = silentLogger } = options;
  const streams = new StreamServer({ origin: () => `https://${address()}` });
  const server = createCriServer({ engine, streams, logger });
  const injector = server.grpc.createConnectionInjector(ServerCredentials.createInsecure());
  const listener = await listenTls({
    ...{ host, port: options.port, tls, logger },
    calls: (socket) => injector.injectConnection(socket),
    streams: (socket) => streams.connected(socket),
  });
  const address = () => `${host.includes(':') ? `[${host}]` : host}:${listener.port}`;
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= (async () => {
      server.endStreams();
      await streams.close();
      await server.shutDown();
      await listener.close();
    })();
    return closing;
  };
  return { endpoint: `tcp://${address()}`, [Symbol.asyncDispose]: close };
}

/** A socket that is created at a temporary path and then moved to its final path. */
export interface PreparedSocket {
  /** Temporary path at which the server listens; other users cannot access its folder. */
  readonly path: string;
  /** Restricts the socket to its owner and moves it to the final path. */
  publish(): Promise<void>;
  /** Removes the socket, unless another process has replaced it. */
  release(): Promise<void>;
}

/**
 * Prepares a socket for a path. A stale socket at the path is replaced atomically when the new one is ready, so that
 * other users never have access to the new socket.
 *
 * @throws `AlreadyExists` when another process listens at the path or the path is not a socket; errors of the file
 * system
 */
export async function prepareSocket(path: string): Promise<PreparedSocket> {
  const folder = dirname(path);
  await mkdir(folder, { recursive: true, mode: 0o755 });
  await rejectOccupied(path);
  const temporaryFolder = await mkdtemp(join(folder, '.cri-'));
  const temporaryPath = join(temporaryFolder, 's');
  let inode: bigint | undefined;
  return {
    path: temporaryPath,
    publish: async () => {
      await chmod(temporaryPath, 0o600);
      inode = (await lstat(temporaryPath, { bigint: true })).ino;
      await rename(temporaryPath, path);
      await rm(temporaryFolder, { recursive: true, force: true });
    },
    release: async () => {
      await rm(temporaryFolder, { recursive: true, force: true });
      if (inode !== undefined && (await lstat(path, { bigint: true }).catch(() => undefined))?.ino === inode)
        await rm(path, { force: true });
    },
  };
}

async function rejectOccupied(path: string): Promise<void> {
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (found === undefined) return;
  if (!found.isSocket()) throw new RuntimeError('AlreadyExists', `${path} already exists and is not a socket`);
  if (await isListening(path)) throw new RuntimeError('AlreadyExists', `another process already listens at ${path}`);
}

function isListening(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED' || error.code === 'ENOENT') resolve(false);
      // The queue of the socket is full, so a process listens.
      else if (error.code === 'EAGAIN') resolve(true);
      else reject(error);
    });
  });
}
