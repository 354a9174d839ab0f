import { chmod, lstat, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { RuntimeError } from '@keelson/container-runtime';

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
