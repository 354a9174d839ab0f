import {
  type Container,
  type ContainerConfig,
  type ContainerId,
  type ContainerState,
  type ContainerStatus,
  ExitReason,
  type LinuxResources,
  RuntimeError,
} from '@keelson/container-runtime';
import type { FakeBehaviour } from './behaviour.ts';
import type { FakeSandbox } from './fake-sandbox.ts';
import type { FakeWorld } from './fake-world.ts';

/** How a process ended. */
interface Ended {
  readonly exitCode: number;
  readonly reason: string;
  readonly message?: string;
  readonly signal?: string;
  readonly finishedAt: number;
}

/** A scripted process: created, running, exited. */
export class FakeContainer {
  readonly id: ContainerId;
  readonly config: ContainerConfig;
  readonly sandbox: FakeSandbox;
  readonly #world: FakeWorld;
  #snapshot: Container;
  #behaviour: FakeBehaviour = {};
  #starting = false;
  #startedAt: number | undefined;
  #ended: Ended | undefined;
  #resources: LinuxResources;
  #cancelExit = () => {};
  #cancelKill = () => {};
  readonly #waiters: (() => void)[] = [];

  constructor(world: FakeWorld, sandbox: FakeSandbox, config: ContainerConfig, imageId: string) {
    const { metadata, image, labels = {}, annotations = {} } = config;
    this.id = `container-${world.nextIndex()}`;
    this.#world = world;
    this.sandbox = sandbox;
    this.config = config;
    this.#resources = config.resources ?? {};
    this.#snapshot = {
      id: this.id,
      sandboxId: sandbox.id,
      metadata,
      image,
      imageId,
      state: 'created',
      createdAt: world.clock.now(),
      labels,
      annotations,
    };
    world.containers.set(this.id, this);
    sandbox.containers.add(this);
    this.#publish('containerCreated');
  }

  get state(): ContainerState {
    return this.#snapshot.state;
  }

  get snapshot(): Container {
    return this.#snapshot;
  }

  get startedAt(): number | undefined {
    return this.#startedAt;
  }

  get behaviour(): FakeBehaviour {
    return this.#behaviour;
  }

  status(): ContainerStatus {
    const { logDirectory } = this.sandbox.config;
    const { logPath, mounts = [] } = this.config;
    return {
      ...this.#snapshot,
      ...(this.#startedAt !== undefined && { startedAt: this.#startedAt }),
      ...this.#ended,
      ...(logDirectory !== undefined && logPath !== undefined && { logPath: `${logDirectory}/${logPath}` }),
      mounts,
      resources: this.#resources,
    };
  }

  async start(): Promise<void> {
    if (this.state !== 'created' || this.#starting) {
      throw new RuntimeError('InvalidState', `container "${this.id}" cannot be started: it is ${this.state}`);
    }
    this.#starting = true;
    const { sandbox, config } = this;
    this.#behaviour = this.#world.script({ sandbox: sandbox.config, config, metadata: config.metadata });
    const { startDelayMs = 0, startError, exitAfterMs, exitCode = 0 } = this.#behaviour;
    if (startDelayMs > 0) await this.#world.wait(startDelayMs);
    if (this.state !== 'created')
      throw new RuntimeError('InvalidState', `container "${this.id}" was stopped before it started`);
    if (startError !== undefined) {
      this.#finish({
        exitCode: 128,
        reason: ExitReason.StartError,
        message: startError,
        finishedAt: this.#world.clock.now(),
      });
      throw new RuntimeError('StartFailed', startError);
    }
    this.#startedAt = this.#world.clock.now();
    this.#become('running');
    this.#publish('containerStarted');
    if (exitAfterMs === undefined) return;
    const { exitReason, exitMessage } = this.#behaviour;
    this.#cancelExit = this.#world.clock.after(exitAfterMs, () => this.exit(exitCode, exitReason, exitMessage));
  }

  /** Ends the process with an exit code. @throws `InvalidState` unless running. */
  exit(exitCode: number, reason?: string, message?: string): void {
    if (this.state !== 'running') throw new RuntimeError('InvalidState', `container "${this.id}" is ${this.state}`);
    this.#finish({
      exitCode,
      reason: reason ?? (exitCode === 0 ? ExitReason.Completed : ExitReason.Error),
      finishedAt: this.#world.clock.now(),
      ...(message !== undefined && { message }),
      ...signalOf(exitCode),
    });
  }

  /**
   * Stops the container; resolves when it has exited. During a delayed start the container becomes exited without
   * running, and the start fails. Has no effect on a container that was never started.
   */
  stop(gracePeriodMs: number): Promise<void> {
    if (this.state !== 'running') {
      if (this.state === 'created' && this.#starting)
        this.#finish({ exitCode: 137, reason: ExitReason.Error, finishedAt: this.#world.clock.now() });
      return Promise.resolve();
    }
    const { stopAfterMs = 0, stopExitCode = 143 } = this.#behaviour;
    const ended = new Promise<void>((resolve) => this.#waiters.push(resolve));
    this.#cancelKill();
    if (gracePeriodMs <= 0) {
      this.exit(137);
      return ended;
    }
    const killed = stopAfterMs === 'never' || stopAfterMs > gracePeriodMs;
    const after = killed ? gracePeriodMs : stopAfterMs;
    const end = () => {
      if (this.state === 'running') this.exit(killed ? 137 : stopExitCode);
    };
    if (after === 0) end();
    else this.#cancelKill = this.#world.clock.after(after, end);
    return ended;
  }

  remove(): void {
    if (!this.#world.containers.delete(this.id)) return;
    this.#cancelExit();
    this.#cancelKill();
    this.sandbox.containers.delete(this);
    this.#publish('containerRemoved');
  }

  update(resources: LinuxResources): void {
    if (this.state === 'exited') throw new RuntimeError('InvalidState', `container "${this.id}" is exited`);
    this.#resources = { ...this.#resources, ...resources };
  }

  #finish(ended: Ended): void {
    this.#ended = ended;
    this.#cancelExit();
    this.#cancelKill();
    this.#become('exited');
    this.#publish('containerExited');
    for (const wake of this.#waiters.splice(0)) wake();
  }

  #become(state: ContainerState): void {
    this.#snapshot = { ...this.#snapshot, state };
  }

  #publish(type: 'containerCreated' | 'containerStarted' | 'containerExited' | 'containerRemoved'): void {
    this.#world.events.publish({ type, containerId: this.id, sandboxId: this.sandbox.id, at: this.#world.clock.now() });
  }
}

function signalOf(exitCode: number): { signal?: string } {
  if (exitCode === 137) return { signal: 'SIGKILL' };
  return exitCode === 143 ? { signal: 'SIGTERM' } : {};
}
