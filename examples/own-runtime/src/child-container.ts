import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { constants } from 'node:os';
import {
  type Container,
  type ContainerConfig,
  type ContainerState,
  type ContainerStatus,
  ExitReason,
  RuntimeError,
} from '@keelson/container-runtime';
import type { Clock } from '@keelson/core/runtime';
import { ContainerLog } from './container-log.ts';
import { kill } from './leftovers.ts';

/** Output that descendants of the container still write after its end is waited for this long. */
const outputMs = 1000;

export interface ChildContainerParts {
  readonly sandboxId: string;
  readonly config: ContainerConfig;
  readonly imageId: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly logPath: string | undefined;
  readonly clock: Clock;
  /** Called after every change of the state. */
  readonly changed: (type: 'containerCreated' | 'containerStarted' | 'containerExited') => void;
}

/** One container: a process group of the machine. */
export class ChildContainer {
  readonly id = randomUUID().replaceAll('-', '');
  readonly sandboxId: string;
  readonly #parts: ChildContainerParts;
  readonly #createdAt: number;
  #state: ContainerState = 'created';
  #child: ChildProcess | undefined;
  #log: ContainerLog | undefined;
  /** Set by the first start, whatever comes of it. */
  #starting: Promise<void> | undefined;
  /** Resolves when the state is `exited`. */
  #ended: Promise<void> | undefined;
  #details: Partial<Pick<ContainerStatus, 'startedAt' | 'finishedAt' | 'exitCode' | 'signal' | 'reason' | 'message'>> =
    {};

  constructor(parts: ChildContainerParts) {
    this.#parts = parts;
    this.sandboxId = parts.sandboxId;
    this.#createdAt = parts.clock.now();
  }

  get snapshot(): Container {
    const { sandboxId, config, imageId } = this.#parts;
    const { metadata, image, labels = {}, annotations = {} } = config;
    return {
      ...{ id: this.id, sandboxId, metadata, image, imageId, labels, annotations },
      state: this.#state,
      createdAt: this.#createdAt,
    };
  }

  get status(): ContainerStatus {
    const { logPath } = this.#parts;
    const pid = this.#state === 'running' ? this.#child?.pid : undefined;
    return {
      ...this.snapshot,
      ...this.#details,
      mounts: [],
      resources: {},
      ...(logPath !== undefined && { logPath }),
      ...(pid !== undefined && { pid }),
    };
  }

  /** The environment and directory in which the container and the commands of exec run. */
  get place(): { readonly env: Record<string, string>; readonly cwd: string } {
    const { config, environment } = this.#parts;
    const own = Object.fromEntries((config.env ?? []).map(({ name, value }) => [name, value]));
    return { env: { ...environment, ...own }, cwd: config.workingDir ?? '/' };
  }

  requireRunning(): void {
    if (this.#state !== 'running')
      throw new RuntimeError('InvalidState', `the container ${this.id} is ${this.#state}, not running`);
  }

  async start(): Promise<void> {
    if (this.#starting !== undefined)
      throw new RuntimeError('InvalidState', `the container ${this.id} was started before`);
    this.#starting = this.#start();
    await this.#starting;
  }

  /** Ends the process group; resolves when the container has exited. Does nothing unless it runs. */
  async stop(gracePeriodMs: number): Promise<void> {
    await this.#starting?.catch(() => {});
    const pid = this.#child?.pid;
    if (this.#state !== 'running' || pid === undefined) return;
    const killGroup = () => {
      if (this.#state === 'running') kill(-pid, 'SIGKILL');
    };
    if (gracePeriodMs > 0) kill(-pid, signalOf(this.#parts.config.stopSignal));
    const cancel = this.#parts.clock.after(gracePeriodMs, killGroup);
    await this.#ended;
    cancel();
  }

  async reopenLog(): Promise<void> {
    this.requireRunning();
    await this.#log?.reopen();
  }

  async #start(): Promise<void> {
    const { config, logPath, clock, changed } = this.#parts;
    const [program = '', ...args] = [...(config.command ?? []), ...(config.args ?? [])];
    // `detached` makes the process the leader of a group, so that signals reach its descendants as well.
    const child = spawn(program, args, { ...this.place, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
    try {
      await Promise.race([once(child, 'spawn'), exited]);
    } catch (error) {
      const { message } = error as Error;
      this.#exit({ exitCode: 128, reason: ExitReason.StartError, message });
      throw new RuntimeError('StartFailed', `${program}: ${message}`, { cause: error });
    }
    this.#child = child;
    this.#state = 'running';
    this.#details = { startedAt: clock.now() };
    if (logPath !== undefined) this.#log = new ContainerLog(logPath, clock);
    changed('containerStarted');
    this.#ended = this.#finish(child, exited);
  }

  async #finish(child: ChildProcess, exited: Promise<[number | null, NodeJS.Signals | null]>): Promise<void> {
    const output = this.#copyOutput(child);
    const [code, signal] = await exited;
    const finishedAt = this.#parts.clock.now();
    // A container ends with its first process.
    if (child.pid !== undefined) kill(-child.pid, 'SIGKILL');
    const cancel = this.#parts.clock.after(outputMs, () => {
      child.stdout?.destroy();
      child.stderr?.destroy();
    });
    await output;
    cancel();
    const exitCode = code ?? 128 + constants.signals[signal ?? 'SIGKILL'];
    const reason = exitCode === 0 ? ExitReason.Completed : ExitReason.Error;
    this.#exit({ finishedAt, exitCode, reason, ...(signal !== null && { signal }) });
  }

  async #copyOutput({ stdout, stderr }: ChildProcess): Promise<void> {
    const log = this.#log;
    if (log === undefined) {
      stdout?.resume();
      stderr?.resume();
      return;
    }
    // A stream that is destroyed, or a log that cannot be written, does not keep the container from ending.
    await Promise.allSettled([stdout && log.write(stdout, 'stdout'), stderr && log.write(stderr, 'stderr')]);
    await log.close().catch(() => {});
  }

  #exit(details: Partial<ContainerStatus> & { readonly exitCode: number; readonly reason: string }): void {
    this.#state = 'exited';
    this.#details = { ...this.#details, finishedAt: this.#parts.clock.now(), ...details };
    this.#parts.changed('containerExited');
  }
}

/** `SIGUSR1`, `USR1` or `10`. */
function signalOf(text = 'SIGTERM'): NodeJS.Signals {
  const known = Object.entries(constants.signals).find(
    ([name, number]) => name === text || name === `SIG${text}` || String(number) === text,
  );
  return (known?.[0] ?? 'SIGTERM') as NodeJS.Signals;
}
