import { randomUUID } from 'node:crypto';
import { chmodSync, closeSync, openSync, readdirSync, realpathSync, renameSync, rmSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { StorageError, StorageErrorCode } from '@keelson/core';
import type { Logger } from '@keelson/core/runtime';

const prefix = 'keelson.lock.';
/** Prefix of a socket that does not accept connections yet; other processes ignore it. */
const draftPrefix = '.keelson.lock.';
/** Lock file of earlier versions, which contained the id of the process. */
const formerLock = 'keelson.lock';
/** Longest path of a socket that every system accepts. */
const socketPathBytes = 100;
const answerMs = 1000;
/** After this many consecutive attempts without an answer, the other process counts as the owner. */
const silences = 3;
const pollMs = 20;
/**
 * After this many attempts, another process that has neither acquired the directory nor withdrawn counts as the owner.
 */
const attempts = 500;
/** Error codes of `bind` on file systems without sockets. */
const withoutSockets = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'EINVAL', 'ENOSYS'];

/** The answer of a process to connections to its socket. */
interface Owner {
  readonly id: string;
  readonly pid: number;
  readonly host: string;
  /** False while the process still checks for other owners. */
  readonly holds: boolean;
}

/**
 * Result of a connection to a socket: `dead` when no process listens, `silent` when a process listens and does not
 * answer in time, `broken` when the answer was cut off, for example by the end of the process.
 */
type Probe = Owner | 'dead' | 'silent' | 'broken';

/**
 * Admits one process per directory. The lock is a Unix socket in the directory on which its owner listens. The kernel
 * closes the socket when the process ends, in whatever way, and accepts connections to it from other PID and network
 * namespaces and from other containers of the machine.
 *
 * Each process first listens on a socket with a name of its own, then connects to all others. Of two processes that do
 * so at the same time at least one detects the other. While neither owns the lock, the process with the smaller id
 * waits and the other withdraws. Names are never reused, so that the removal of the socket of a dead process cannot
 * remove the socket of a live one.
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
    // The lock does not keep the process alive.
    this.#server.unref();
  }

  /**
   * @throws StorageError `Unavailable` when another process, or another store of this process, uses the directory; the
   *   message names the process
   */
  static async acquire(path: string, logger: Logger): Promise<DirectoryLock> {
    const lock = new DirectoryLock(realpathSync(path));
    try {
      await lock.#publish();
    } catch (error) {
      lock.release();
      if (!withoutSockets.includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
      logger.warn('the file system has no sockets: a second process is detected when it writes, not when it starts', {
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

  /** Listens under a name that other processes check. The name appears once connections are accepted. */
  async #publish(): Promise<void> {
    const draft = draftPrefix + this.#id;
    await withSocketPath(
      this.#directory,
      draft,
      (path) =>
        new Promise<void>((resolve, reject) => {
          this.#server.once('error', reject);
          // `exclusive`: a cluster worker must not share the listener of the primary process, which outlives it.
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
      // Not injected: other processes decide in real time.
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  }

  /** Returns another process with a socket here, preferably the owner. Removes sockets of dead processes. */
  async #rival(): Promise<Exclude<Probe, 'dead'> | undefined> {
    const rivals: Exclude<Probe, 'dead'>[] = [];
    for (const name of readdirSync(this.#directory)) {
      if (!name.startsWith(prefix) || name === prefix + this.#id) continue;
      const probe = await withSocketPath(this.#directory, name, probeSocket);
      if (probe === 'dead') rmSync(join(this.#directory, name), { force: true });
      else rivals.push(probe);
    }
    const decides = (rival: Exclude<Probe, 'dead'>) =>
      rival !== 'silent' && rival !== 'broken' && (rival.holds || rival.id < this.#id);
    return rivals.find(decides) ?? rivals[0];
  }
}

function probeSocket(path: string): Promise<Probe> {
  return new Promise((resolve) => {
    let text = '';
    const socket = connect(path);
    const finish = (probe: Probe) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(probe);
    };
    // Two turns of the event loop: an answer that arrived while this process was busy is still read.
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
 * Calls `use` with a path of the socket that is short enough for the system: the path in the directory, or a path
 * through the descriptor of the directory.
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
