import type { Socket } from 'node:net';
import { type ContainerId, RuntimeError } from '@keelson/container-runtime';
import type { Clock } from '@keelson/core';
import type { ExecDetails } from '../api/documents.ts';
import type { EngineHttp } from '../api/engine-http.ts';
import { belongsTo, killAll, withDescendants } from '../machine/processes.ts';

/** Between looks whether a command has ended while its output is still open. */
const firstLookMs = 200;
const lastLookMs = 2_000;
/** Output that comes later than this after the end of the command is of what it left behind. */
const drainMs = 200;
/** Exit code of a command whose end nobody can tell. */
const lostExitCode = 137;

export interface ExecWish {
  readonly command: readonly string[];
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
}

/** One command in a container, from its start to its exit code. */
export class ExecSession {
  readonly socket: Socket;
  readonly #http: EngineHttp;
  readonly #clock: Clock;
  readonly #containerId: ContainerId;
  readonly #id: string;

  private constructor(http: EngineHttp, clock: Clock, containerId: ContainerId, id: string, socket: Socket) {
    this.#http = http;
    this.#clock = clock;
    this.#containerId = containerId;
    this.#id = id;
    this.socket = socket;
  }

  /** @throws `NotFound`, `InvalidState` */
  static async start(
    http: EngineHttp,
    clock: Clock,
    containerId: ContainerId,
    wish: ExecWish,
    signal: AbortSignal | undefined,
  ): Promise<ExecSession> {
    if (wish.command.length === 0) throw new RuntimeError('InvalidArgument', 'there is no command');
    const { body } = await http.json<{ Id: string }>('POST', `/containers/${encodeURIComponent(containerId)}/exec`, {
      body: {
        ...{ Cmd: wish.command, Tty: wish.tty },
        ...{ AttachStdin: wish.stdin, AttachStdout: wish.stdout, AttachStderr: wish.stderr },
      },
      signal,
    });
    const socket = await http.hijack(`/exec/${body.Id}/start`, { body: { Detach: false, Tty: wish.tty }, signal });
    return new ExecSession(http, clock, containerId, body.Id, socket);
  }

  /**
   * Resolves with the exit code when the command has ended and its output is read: `read` resolves at the end of the
   * stream, which what the command left running may keep open.
   */
  async ended(read: Promise<void>): Promise<number> {
    let over = false;
    void read.then(() => {
      over = true;
    });
    for (let wait = firstLookMs; ; wait = Math.min(wait * 2, lastLookMs)) {
      await Promise.race([read, this.#pause(wait)]);
      const details = await this.#details();
      if (details === undefined) return lostExitCode;
      if (details.Running) {
        // The stream may end a moment before the engine knows that the command did.
        if (over) await this.#pause(wait / 10);
        continue;
      }
      if (!over) await Promise.race([read, this.#pause(drainMs)]);
      this.socket.destroy();
      return details.ExitCode ?? lostExitCode;
    }
  }

  async resize(width: number, height: number): Promise<void> {
    await this.#http.json('POST', `/exec/${this.#id}/resize`, { query: { w: width, h: height } });
  }

  /** Ends the command and what it started. Engines cannot, so its processes are found on the machine. */
  async kill(): Promise<void> {
    const details = await this.#details();
    if (details?.Running !== true || details.Pid <= 0 || !belongsTo(details.Pid, this.#containerId)) return;
    killAll(withDescendants(details.Pid));
  }

  /** Undefined when the engine has forgotten it, or does not answer any more. */
  async #details(): Promise<ExecDetails | undefined> {
    return this.#http.json<ExecDetails>('GET', `/exec/${this.#id}/json`).then(
      ({ body }) => body,
      () => undefined,
    );
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#clock.after(ms, resolve));
  }
}
