import { spawn } from 'node:child_process';
import { type FileHandle, open } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { RuntimeError } from '@keelson/container-runtime';
import { tool, toolPath } from '../machine/tools.ts';
import type { StateDirectory } from '../state/state-directory.ts';

const entry = fileURLToPath(new URL('./log-keeper.js', import.meta.url));
/** Small heap: the keeper holds chunks of at most 64 KiB. */
const nodeFlags = ['--max-old-space-size=64', '--max-semi-space-size=1', '--v8-pool-size=0', '--no-warnings'];
const startTimeoutMs = 30_000;

type Operation = 'keep' | 'drop' | 'reopen' | 'closeStdin' | 'attach';

/** Talks to the log keeper, and starts one when none answers. */
export class KeeperClient {
  readonly #state: StateDirectory;
  readonly #onLost: () => void;
  #folder: FileHandle | undefined;
  #connecting: Promise<Connection> | undefined;
  #closed = false;

  /** `onLost`: the keeper went away although nobody asked it to. */
  constructor(state: StateDirectory, onLost: () => void) {
    this.#state = state;
    this.#onLost = onLost;
  }

  /** @throws `Unavailable`, or `InvalidState` with the keeper's reason. */
  async request(op: Operation, id: string): Promise<void> {
    const connection = await this.#connection();
    await connection.request(op, id);
  }

  /** Makes sure that a keeper runs, which looks after every container that needs it. */
  async ensure(): Promise<void> {
    await this.#connection();
  }

  /** A connection of its own that carries the container's output from now on. */
  async attach(id: string): Promise<Socket> {
    await this.#connection();
    const connection = await this.#connect(() => {});
    await connection.request('attach', id);
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
    const lost = () => {
      this.#connecting = undefined;
      if (!this.#closed) this.#onLost();
    };
    const deadline = performance.now() + startTimeoutMs;
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.#connect(lost);
      } catch (error) {
        if (performance.now() > deadline)
          throw new RuntimeError('Unavailable', 'the log keeper does not start', { cause: error });
        if (attempt % 50 === 0) this.#start();
        await delay(20);
      }
    }
  }

  /** The lock is inherited by the keeper and falls with it, so two that are started at once do not both run. */
  #start(): void {
    const lock = join(this.#state.keeper, 'lock');
    const args = ['--no-fork', '--nonblock', lock, process.execPath, ...nodeFlags, entry, this.#state.root];
    const child = spawn(tool('flock'), args, { detached: true, stdio: 'ignore', cwd: '/', env: { PATH: toolPath } });
    child.on('error', () => {});
    child.unref();
  }

  async #connect(onLost: () => void): Promise<Connection> {
    this.#folder ??= await open(this.#state.keeper, 'r');
    const socket = connect(`/proc/self/fd/${this.#folder.fd}/socket`);
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    return new Connection(socket, onLost);
  }
}

/** Requests are answered in order. */
class Connection {
  readonly #socket: Socket;
  readonly #pending: { resolve: () => void; reject: (error: Error) => void }[] = [];
  #rest = Buffer.alloc(0);
  readonly #onData = (chunk: Buffer) => this.#receive(chunk);

  constructor(socket: Socket, onLost: () => void) {
    this.#socket = socket;
    socket.unref();
    socket.on('data', this.#onData);
    socket.on('error', () => {});
    socket.on('close', () => {
      for (const { reject } of this.#pending.splice(0))
        reject(new RuntimeError('Unavailable', 'the log keeper went away'));
      onLost();
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

  /** Hands the socket over, which holds the process from now on; bytes that came with the last answer are put back. */
  detach(): Socket {
    this.#socket.off('data', this.#onData);
    this.#socket.pause();
    this.#socket.ref();
    if (this.#rest.length > 0) this.#socket.unshift(this.#rest);
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
