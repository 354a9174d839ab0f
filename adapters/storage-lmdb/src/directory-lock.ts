import { randomUUID } from 'node:crypto';
import { chmodSync, closeSync, openSync, readdirSync, realpathSync, renameSync, rmSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { type Logger, StorageError, StorageErrorCode } from '@keelson/core';

const prefix = 'keelson.lock.';
/** Of a socket that does not accept connections yet; never looked for by others. */
const draftPrefix = '.keelson.lock.';
/** Lock file of earlier versions, which named a process by its id. */
const formerLock = 'keelson.lock';
/** Longest path of a socket on every system. */
const socketPathBytes = 100;
const answerMs = 1000;
/** A process that does not answer so many times in a row, each for the time above, has the directory. */
const silences = 3;
const pollMs = 20;
/**
 * Attempts in which another process neither gets the directory nor withdraws; more than any process that runs needs.
 */
const attempts = 500;
/** What `bind` reports on file systems without sockets. */
const withoutSockets = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'EINVAL', 'ENOSYS'];

/** What a process answers to those who connect to its socket. */
interface Owner {
  readonly id: string;
  readonly pid: number;
  readonly host: string;
  /** False while it still looks for other owners. */
  readonly holds: boolean;
}

/**
 * What became of a connection: `dead` when no process listens, `silent` when one does and does not answer in time,
 * `broken` when the answer was cut off, as by the end of the process.
 */
type Found = Owner | 'dead' | 'silent' | 'broken';

/**
 * One process per directory. The lock is a Unix socket in the directory on which its owner listens: the kernel closes
 * it when the process ends, however it ends, and connects to it from other PID and network namespaces and from other
 * containers of the machine.
 *
 * Each process first listens on a socket with a name of its own, then connects to all others. Of two processes that do
 * so at the same time at least one finds the other; while neither holds the lock the one with the smaller id waits and
 * the other withdraws. Names are never used twice, so removing the socket of a dead process cannot remove that of a
 * live one.
 */
export class DirectoryLock {
  readonly #directory: string;
  readonly #id = randomUUID();
  readonly #server: Server;
  #holds = false;

  private constructor(directory: string) {
    this.#directory = directory;
    this.#server = createServer((connection) => {
      const owner: Owner = { id: this.#id, pid: process.pid, host: hostname(), holds: this.#holds };
      connection.on('error', () => {});
      connection.end(JSON.stringify(owner));
    });
    // The lock lives as long as the process, and does not keep it alive.
    this.#server.unref();
  }

  /**
   * @throws StorageError `Unavailable` when another process, or another store of this process, has the directory; the
   *   message names the process.
   */
  static async acquire(path: string, logger: Logger): Promise<DirectoryLock> {
    const lock = new DirectoryLock(realpathSync(path));
    try {
      await lock.#publish();
    } catch (error) {
      lock.release();
      if (!withoutSockets.includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
      logger.warn('the file system has no sockets: a second process is not refused at its start, but when it writes', {
        path,
      });
      return lock;
    }
    try {
      await lock.#claim();
      return lock;
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  /** Idempotent. */
  release(): void {
    for (const start of [prefix, draftPrefix]) rmSync(join(this.#directory, start + this.#id), { force: true });
    this.#server.close();
  }

  /** Listens under a name that others look for. The name appears when connections are accepted, never before. */
  async #publish(): Promise<void> {
    const draft = draftPrefix + this.#id;
    await withSocketPath(
      this.#directory,
      draft,
      (path) =>
        new Promise<void>((resolve, reject) => {
          this.#server.once('error', reject);
          // Not through the primary process of a cluster, whose end would not be this one's.
          this.#server.listen({ path, exclusive: true }, () => {
            this.#server.off('error', reject);
            resolve();
          });
        }),
    );
    this.#server.on('error', () => {});
    chmodSync(join(this.#directory, draft), 0o600);
    renameSync(join(this.#directory, draft), join(this.#directory, prefix + this.#id));
  }

  async #claim(): Promise<void> {
    let silent = 0;
    for (let attempt = 1; ; attempt++) {
      const rival = await this.#rival();
      if (rival === undefined) {
        this.#holds = true;
        rmSync(join(this.#directory, formerLock), { force: true });
        return;
      }
      silent = rival === 'silent' ? silent + 1 : 0;
      const undecided = attempt === attempts || silent === silences;
      if (rival === 'silent' || rival === 'broken') {
        if (undecided) throw inUse(this.#directory, 'a process that does not answer');
      } else if (rival.holds || rival.id < this.#id || undecided) {
        throw inUse(this.#directory, `process ${rival.pid} on ${rival.host}`);
      }
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  }

  /** Another process with a socket here, first of all one that has the lock. Sockets of dead processes are removed. */
  async #rival(): Promise<Exclude<Found, 'dead'> | undefined> {
    const rivals: Exclude<Found, 'dead'>[] = [];
    for (const name of readdirSync(this.#directory)) {
      if (!name.startsWith(prefix) || name === prefix + this.#id) continue;
      const found = await withSocketPath(this.#directory, name, ask);
      if (found === 'dead') rmSync(join(this.#directory, name), { force: true });
      else rivals.push(found);
    }
    const decides = (rival: Exclude<Found, 'dead'>) =>
      rival !== 'silent' && rival !== 'broken' && (rival.holds || rival.id < this.#id);
    return rivals.find(decides) ?? rivals[0];
  }
}

function ask(path: string): Promise<Found> {
  return new Promise((resolve) => {
    let text = '';
    const socket = connect(path);
    const finish = (found: Found) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(found);
    };
    // An answer that arrived while this process was busy is read before the time counts as over.
    const timer = setTimeout(() => setImmediate(() => setImmediate(() => finish('silent'))), answerMs);
    socket.setEncoding('utf8');
    socket.on('data', (piece: string) => {
      text += piece;
    });
    socket.on('end', () => finish(ownerOf(text)));
    socket.on('error', ({ code }: NodeJS.ErrnoException) =>
      finish(code === 'ECONNREFUSED' || code === 'ENOENT' ? 'dead' : 'broken'),
    );
  });
}

function ownerOf(text: string): Owner | 'broken' {
  try {
    const owner = JSON.parse(text) as Partial<Owner>;
    return typeof owner.id === 'string' && typeof owner.pid === 'number' ? (owner as Owner) : 'broken';
  } catch {
    return 'broken';
  }
}

/**
 * Calls with a path of the socket that is short enough for the system: that of the directory, or one through its
 * descriptor.
 */
async function withSocketPath<T>(directory: string, name: string, use: (path: string) => Promise<T>): Promise<T> {
  const path = join(directory, name);
  if (Buffer.byteLength(path) <= socketPathBytes) return use(path);
  if (process.platform !== 'linux') throw new Error(`the path ${directory} is too long for a socket`);
  const descriptor = openSync(directory, 'r');
  try {
    return await use(`/proc/self/fd/${descriptor}/${name}`);
  } finally {
    closeSync(descriptor);
  }
}

function inUse(directory: string, by: string): StorageError {
  return new StorageError(
    StorageErrorCode.Unavailable,
    `the store in ${directory} is in use by ${by}; one process at a time may open it`,
  );
}
