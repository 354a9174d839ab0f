import { spawn } from 'node:child_process';
import { type FileHandle, open } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { tool, toolPath } from '@keelson/container-host';
import { isRuntimeError, RuntimeError } from '@keelson/container-runtime';
import type { StateDirectory } from '../state/state-directory.ts';

const entry = fileURLToPath(import.meta.resolve('#log-keeper'));
/** Node options of the log keeper. A small heap is sufficient, because the keeper buffers chunks of at most 64 KiB. */
const nodeFlags = ['--max-old-space-size=64', '--max-semi-space-size=1', '--v8-pool-size=0', '--no-warnings'];
const defaultStartTimeoutMs = 30_000;

type Operation = 'keep' | 'drop' | 'reopen' | 'closeStdin' | 'attach';

/** Client of the log keeper. Starts a keeper when none is running. */
export class KeeperClient {
  readonly #state: StateDirectory;
  readonly #onDisconnect: () => void;
  readonly #startTimeoutMs: number;
  #folder: FileHandle | undefined;
  #connecting: Promise<Connection> | undefined;
  #closed = false;

  /**
   * `onDisconnect` is called when the connection ends although this client is open. Requests fail when a keeper has not
   * started within `startTimeoutMs`.
   */
  constructor(state: StateDirectory, onDisconnect: () => void, startTimeoutMs: number = defaultStartTimeoutMs) {
    this.#state = state;
    this.#onDisconnect = onDisconnect;
    this.#startTimeoutMs = startTimeoutMs;
  }

  /**
   * Sends a request, once more when the connection is lost: an idle keeper may have ended just after it was reached.
   * Requests may be repeated. @throws `Unavailable`, or `InvalidState` with the reason that the keeper reports.
   */
  async request(op: Operation, id: string): Promise<void> {
    const connection = await this.#connection();
    try {
      await connection.request(op, id);
    } catch (error) {
      if (!isRuntimeError(error, 'Unavailable')) throw error;
      await (await this.#connection()).request(op, id);
    }
  }

  /** Ensures that a keeper is running. A new keeper reads the output of all running containers. */
  async ensure(): Promise<void> {
    await this.#connection();
  }

  /** Opens a separate connection, which carries the output that the container writes from now on. */
  async attach(id: string): Promise<Socket> {
    await this.#connection();
    const connection = await this.#connect(() => {});
    try {
      await connection.request('attach', id);
    } catch (error) {
      connection.end();
      throw error;
    }
    return connection.detach();
  }

  async close(): Promise<void> {
    this.#closed = true;
    const connection = await this.#connecting?.catch(() => undefined);
    connection?.end();
    await this.#folder?.close();
  }

  #connection(): Promise<Connection> {
    if (this.#closed) return Promise.reject(new RuntimeError('Unavailable', 'the runtime is closed'));
    this.#connecting ??= this.#establish().catch((error: unknown) => {
      this.#connecting = undefined;
      throw error;
    });
    return this.#connecting;
  }

  async #establish(): Promise<Connection> {
    const disconnected = () => {
      this.#connecting = undefined;
      if (!this.#closed) this.#onDisconnect();
    };
    // Not injected: the log keeper is another process, whose start takes real time.
    const deadline = performance.now() + this.#startTimeoutMs;
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.#connect(disconnected);
      } catch (error) {
        if (performance.now() > deadline)
          throw new RuntimeError('Unavailable', 'the log keeper did not start', { cause: error });
        if (attempt % 50 === 0) this.#start();
        await delay(20);
      }
    }
  }

  /** The keeper inherits the lock and releases it when it ends, so of two keepers started at once only one runs. */
  #start(): void {
    const lock = join(this.#state.keeper, 'lock');
    const args = ['--no-fork', '--nonblock', lock, process.execPath, ...nodeFlags, entry, this.#state.root];
    const child = spawn(tool('flock'), args, { detached: true, stdio: 'ignore', cwd: '/', env: { PATH: toolPath } });
    child.on('error', () => {});
    child.unref();
  }

  async #connect(onDisconnect: () => void): Promise<Connection> {
    this.#folder ??= await open(this.#state.keeper, 'r');
    const socket = connect(`/proc/self/fd/${this.#folder.fd}/socket`);
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    return new Connection(socket, onDisconnect);
  }
}

/** One connection to the keeper, which answers requests in their order. */
class Connection {
  readonly #socket: Socket;
  readonly #pending: { resolve: () => void; reject: (error: Error) => void }[] = [];
  #rest = Buffer.alloc(0);
  readonly #onData = (chunk: Buffer) => this.#receive(chunk);

  constructor(socket: Socket, onDisconnect: () => void) {
    this.#socket = socket;
    socket.unref();
    socket.on('data', this.#onData);
    socket.on('error', () => {});
    socket.on('close', () => {
      for (const { reject } of this.#pending.splice(0))
        reject(new RuntimeError('Unavailable', 'the connection to the log keeper was lost'));
      onDisconnect();
    });
  }

  request(op: Operation, id: string): Promise<void> {
    this.#socket.ref();
    const done = new Promise<void>((resolve, reject) => this.#pending.push({ resolve, reject }));
    this.#socket.write(`${JSON.stringify({ op, id })}\n`);
    return done.finally(() => {
      if (this.#pending.length === 0) this.#socket.unref();
    });
  }

  /**
   * Passes the socket to the caller. The socket keeps the process alive from now on. Bytes that were received after
   * the last answer are pushed back into it.
   */
  detach(): Socket {
    this.#socket.off('data', this.#onData);
    this.#socket.pause();
    this.#socket.ref();
    this.#socket.unshift(this.#rest);
    return this.#socket;
  }

  end(): void {
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    for (let end = this.#rest.indexOf(0x0a); end >= 0 && this.#pending.length > 0; end = this.#rest.indexOf(0x0a)) {
      const { error } = JSON.parse(this.#rest.toString('utf8', 0, end)) as { error?: string };
      this.#rest = this.#rest.subarray(end + 1);
      const pending = this.#pending.shift();
      if (error === undefined) pending?.resolve();
      else pending?.reject(new RuntimeError('InvalidState', `log keeper: ${error}`));
    }
  }
}
