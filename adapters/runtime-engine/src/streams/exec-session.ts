import type { Socket } from 'node:net';
import { type ContainerId, RuntimeError } from '@keelson/container-runtime';
import type { Clock } from '@keelson/core/runtime';
import type { ExecDetails } from '../api/documents.ts';
import type { EngineHttp } from '../api/engine-http.ts';
import { belongsTo, killAll, withDescendants } from '../containers/processes.ts';

/** Interval of the polls for the exit of a command while its output is still open. */
const firstPollMs = 200;
const maxPollMs = 2_000;
/** Output that arrives later than this after the exit comes from remaining child processes and is ignored. */
const drainMs = 200;
/** Exit code of a command whose exit the engine cannot report. */
const unknownExitCode = 137;

export interface ExecParameters {
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
    parameters: ExecParameters,
    signal: AbortSignal | undefined,
  ): Promise<ExecSession> {
    if (parameters.command.length === 0) throw new RuntimeError('InvalidArgument', 'the command is empty');
    const { body } = await http.json<{ Id: string }>('POST', `/containers/${encodeURIComponent(containerId)}/exec`, {
      body: {
        ...{ Cmd: parameters.command, Tty: parameters.tty },
        ...{ AttachStdin: parameters.stdin, AttachStdout: parameters.stdout, AttachStderr: parameters.stderr },
      },
      signal,
    });
    const socket = await http.hijack(`/exec/${body.Id}/start`, {
      body: { Detach: false, Tty: parameters.tty },
      signal,
    });
    return new ExecSession(http, clock, containerId, body.Id, socket);
  }

  /**
   * Resolves with the exit code when the command has ended and its output is read. `read` resolves at the end of the
   * stream, which child processes of the command may keep open.
   */
  async ended(read: Promise<void>): Promise<number> {
    let over = false;
    void read.then(() => {
      over = true;
    });
    for (let wait = firstPollMs; ; wait = Math.min(wait * 2, maxPollMs)) {
      await Promise.race([read, this.#pause(wait)]);
      const details = await this.#details();
      if (details === undefined) return unknownExitCode;
      if (details.Running) {
        // The stream may end shortly before the engine reports the exit.
        if (over) await this.#pause(wait / 10);
        continue;
      }
      if (!over) await Promise.race([read, this.#pause(drainMs)]);
      this.socket.destroy();
      return details.ExitCode ?? unknownExitCode;
    }
  }

  async resize(width: number, height: number): Promise<void> {
    await this.#http.json('POST', `/exec/${this.#id}/resize`, { query: { w: width, h: height } });
  }

  /** Kills the command and its descendants by process id, because engines have no call for it. */
  async kill(): Promise<void> {
    const details = await this.#details();
    if (details?.Running !== true || details.Pid <= 0 || !belongsTo(details.Pid, this.#containerId)) return;
    killAll(withDescendants(details.Pid));
  }

  /** Queries the state of the command; undefined when the engine has deleted the session or does not respond. */
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
