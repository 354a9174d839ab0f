import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  isAlive,
  type ProcessIdentity,
  readCommandLine,
  readIfPresent,
  signalProcess,
  writeAtomically,
} from '@keelson/container-host';
import {
  type Container,
  type ContainerState,
  type ContainerStatus,
  ExitReason,
  type LinuxResources,
  RuntimeError,
} from '@keelson/container-runtime';
import type { ContainerRecord, ExitRecord } from '../state/state-directory.ts';
import type { ContainerContext } from './container-context.ts';
import { signalName } from './prepare-container.ts';

/** Maximum time from the start of the monitor to the start of the process, mounts included. */
const startTimeoutMs = 30_000;
/** Maximum wait for a started process to execute the container's command, and the interval of the checks. */
const executeTimeoutMs = 2_000;
const executePollMs = 2;
/** Maximum wait for the log keeper to write the last log lines before an exit is reported. */
const logGraceMs = 2_000;
/** Interval at which SIGKILL is repeated while the container has processes. */
const killRetryMs = 100;

/** File in the container's folder with the limits, once they were changed after the creation. */
const resourcesFile = 'resources.json';

/**
 * One container, whose state is derived from its files. A container of an earlier runtime process is treated like one
 * that this process started: `refresh` reads the files, changes the state and publishes events; all other methods
 * query the state or wait for it. Adapters implement how a process is started, signalled and killed.
 */
export abstract class MonitoredContainer<R extends ContainerRecord = ContainerRecord> {
  readonly record: R;
  protected readonly around: ContainerContext;
  readonly #waiters = new Set<() => void>();
  #resources: LinuxResources;
  #starting = false;
  #removed = false;
  #removing: Promise<void> | undefined;
  #pid: ProcessIdentity | undefined;
  #startedAt: number | undefined;
  #exit: ExitRecord | undefined;
  #snapshot: Container;
  #refreshing: Promise<void> | undefined;
  #refreshAgain = false;

  constructor(around: ContainerContext, record: R) {
    const { id, sandboxId, createdAt, imageId, config } = record;
    const { metadata, image, labels = {}, annotations = {} } = config;
    this.around = around;
    this.record = record;
    this.#resources = config.resources ?? {};
    this.#snapshot = { id, sandboxId, metadata, image, imageId, state: 'created', createdAt, labels, annotations };
  }

  get id(): string {
    return this.record.id;
  }

  get state(): ContainerState {
    return this.#snapshot.state;
  }

  get snapshot(): Container {
    return this.#snapshot;
  }

  /** Identity of the first process, once it was started. */
  get identity(): ProcessIdentity | undefined {
    return this.#pid;
  }

  /** Whether the container may write output, so that it requires the log keeper. */
  get isActive(): boolean {
    return !this.#removed && (this.#starting || this.state === 'running');
  }

  status(): ContainerStatus {
    const { config, logPath } = this.record;
    const exit = this.#exit;
    const signal = exit !== undefined && exit.exitCode > 128 ? signalName(exit.exitCode - 128) : undefined;
    return {
      ...this.#snapshot,
      ...(this.#startedAt !== undefined && { startedAt: this.#startedAt }),
      ...(exit !== undefined && {
        ...exit,
        reason: exit.reason ?? (exit.exitCode === 0 ? ExitReason.Completed : ExitReason.Error),
        ...(signal !== undefined && exit.reason !== ExitReason.StartError && { signal }),
      }),
      ...(logPath !== undefined && { logPath }),
      ...(this.state === 'running' && this.#pid !== undefined && { pid: this.#pid.pid }),
      mounts: config.mounts ?? [],
      resources: this.#resources,
    };
  }

  async start(): Promise<void> {
    await this.refresh();
    if (this.state !== 'created' || this.#starting || this.#removed) {
      throw new RuntimeError(
        'InvalidState',
        `container "${this.id}" cannot be started: it is ${this.#starting ? 'starting' : this.state}`,
      );
    }
    this.#starting = true;
    try {
      await this.#startNow();
    } finally {
      this.#starting = false;
    }
  }

  async #startNow(): Promise<void> {
    try {
      await this.launch();
    } catch (error) {
      if (error instanceof RuntimeError && error.code !== 'Unavailable') await this.failStart(error.message);
      throw error;
    }
    const deadline = this.around.clock.monotonic() + startTimeoutMs;
    while (this.state === 'created' && !this.#removed) {
      if (this.around.clock.monotonic() > deadline) {
        await this.failStart(`the process did not start within ${startTimeoutMs} ms`);
      } else {
        await this.changed(250);
        await this.refresh();
      }
    }
    await this.#executed();
    if (this.#exit?.reason === ExitReason.StartError)
      throw new RuntimeError('StartFailed', this.#exit.message ?? 'the process did not start');
  }

  /**
   * Waits until the process executes the container's command. The process ID is recorded before that, while the process
   * still executes launchers, which callers must not observe.
   */
  async #executed(): Promise<void> {
    const deadline = this.around.clock.monotonic() + executeTimeoutMs;
    while (this.state === 'running' && this.around.clock.monotonic() < deadline) {
      if (this.#pid === undefined || !isAlive(this.#pid)) return;
      const commandLine = readCommandLine(this.#pid.pid);
      // The kernel shows an empty command line while a process changes from one program to the next.
      if (commandLine.length > 0 && !this.isLauncher(commandLine)) return;
      await this.changed(executePollMs);
    }
  }

  /**
   * Starts the monitor, which starts the container. A RuntimeError other than `Unavailable` ends the container with
   * the reason `StartError`.
   */
  protected abstract launch(): Promise<void>;

  /** Whether a command line is that of a launcher, which executes the container's command in the same process. */
  protected isLauncher(_commandLine: readonly string[]): boolean {
    return false;
  }

  /** Sends the stop signal. */
  protected abstract signalStop(identity: ProcessIdentity): void;

  /** Sends SIGKILL to all processes of the container. */
  protected abstract killAll(): Promise<void>;

  /** Called when the first process has ended, before the event is published. Returns the exit with its cause. */
  protected abstract settle(exit: ExitRecord): Promise<ExitRecord>;

  /** Called on every refresh while the first process may be running. */
  protected async inspectRunning(_identity: ProcessIdentity): Promise<void> {}

  /** Converts the text that the monitor wrote about a failed start to an error message. */
  protected async describeFailure(text: string): Promise<string> {
    return text;
  }

  protected abstract applyResources(resources: LinuxResources): Promise<void>;

  /** Removes resources outside of the container's folder. */
  protected abstract discard(): Promise<void>;

  protected async failStart(message: string): Promise<void> {
    await this.around.runFiles.writeExit(this.id, { exitCode: 128, reason: ExitReason.StartError, message });
    await this.refresh();
  }

  /**
   * Reads the files and updates the state. A call while the files are being read waits until they were read once more;
   * concurrent calls share this read.
   */
  async refresh(): Promise<void> {
    if (this.#refreshing !== undefined) {
      this.#refreshAgain = true;
      return this.#refreshing;
    }
    this.#refreshing = (async () => {
      do {
        this.#refreshAgain = false;
        await this.#read();
      } while (this.#refreshAgain);
    })().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  async #read(): Promise<void> {
    if (this.state === 'exited' || this.#removed) return;
    const { runFiles, clock } = this.around;
    const exit = await runFiles.exit(this.id);
    if (this.#pid === undefined) {
      const process = await runFiles.process(this.id, 'pid');
      if (process !== undefined) this.#run(process.identity, process.at);
    }
    if (exit !== undefined) {
      const late = clock.now() - exit.finishedAt;
      const logged = this.#pid === undefined || (await runFiles.isLogged(this.id));
      if (logged || late > logGraceMs) await this.#end(exit);
      else this.around.later(this, logGraceMs - late + 1);
      return;
    }
    if (this.#pid !== undefined) await this.inspectRunning(this.#pid);
    await this.#detectLostProcess();
  }

  #run(identity: ProcessIdentity, at: number): void {
    // File times have a lower resolution than the clock, so the file time of the start may precede the creation.
    const startedAt = Math.max(Math.round(at), this.record.createdAt);
    this.#pid = identity;
    this.#startedAt = startedAt;
    this.#snapshot = { ...this.#snapshot, state: 'running' };
    this.#publish('containerStarted', startedAt);
  }

  /** Writes the exit of a container whose monitor and process have both ended, after a kill or a reboot. */
  async #detectLostProcess(): Promise<void> {
    const { runFiles } = this.around;
    const monitor = await runFiles.process(this.id, 'monitor');
    if (monitor === undefined || isAlive(monitor.identity)) return;
    if (this.#pid !== undefined && isAlive(this.#pid)) return;
    if ((await runFiles.exit(this.id)) !== undefined) {
      this.#refreshAgain = true; // The exit was written between the two reads.
      return;
    }
    const message = 'the process ended while its monitor was not running';
    await runFiles.writeExit(this.id, { exitCode: 137, reason: ExitReason.Lost, message });
    this.#refreshAgain = true;
  }

  async #end(record: ExitRecord): Promise<void> {
    const { runFiles } = this.around;
    const earliest = this.#startedAt ?? this.record.createdAt;
    const exit = { ...record, finishedAt: Math.max(Math.round(record.finishedAt), earliest) };
    const failure = await runFiles.failure(this.id);
    await this.killAll();
    if (failure === undefined) this.#exit = await this.settle(exit);
    else this.#exit = { ...exit, reason: ExitReason.StartError, message: await this.describeFailure(failure) };
    this.#snapshot = { ...this.#snapshot, state: 'exited' };
    this.#publish('containerExited', exit.finishedAt);
  }

  /** Stops the container; resolves when it is not running. */
  async stop(gracePeriodMs: number): Promise<void> {
    await this.refresh();
    while (this.#starting && this.state === 'created') await this.changed(50);
    if (this.state !== 'running' || this.#pid === undefined) return;
    if (gracePeriodMs > 0) {
      if (isAlive(this.#pid)) this.signalStop(this.#pid);
      await this.#ended(gracePeriodMs);
    }
    while (this.state === 'running') {
      await this.killAll();
      await this.#ended(killRetryMs);
    }
  }

  async #ended(withinMs: number): Promise<void> {
    const deadline = this.around.clock.monotonic() + withinMs;
    for (;;) {
      await this.refresh();
      const left = deadline - this.around.clock.monotonic();
      if (this.state !== 'running' || left <= 0) return;
      await this.changed(left);
    }
  }

  /**
   * Kills the container if it is running, and removes everything but its log. Can be repeated after a failure; after a
   * success it does nothing.
   */
  remove(): Promise<void> {
    this.#removing ??= this.#remove().catch((error: unknown) => {
      this.#removing = undefined;
      throw error;
    });
    return this.#removing;
  }

  async #remove(): Promise<void> {
    await this.stop(0);
    // From here on the files are removed, also when this removal fails: the state is not read from them any more.
    this.#removed = true;
    const { state, runFiles, keeper } = this.around;
    const monitor = await runFiles.process(this.id, 'monitor');
    if (monitor !== undefined) {
      await keeper.request('drop', this.id).catch(() => {}); // Without a keeper there is no stream to drop.
      if (isAlive(monitor.identity)) signalProcess(monitor.identity.pid, 'SIGKILL');
    }
    await this.discard();
    const trash = join(state.containers, `.${this.id}`);
    await rename(state.container(this.id), trash).catch(() => {});
    await runFiles.remove(this.id);
    await rm(trash, { recursive: true, force: true });
    this.#publish('containerRemoved', this.around.clock.now());
  }

  /** The current resource limits of the container. */
  get resources(): LinuxResources {
    return this.#resources;
  }

  async update(resources: LinuxResources): Promise<void> {
    if (this.state !== 'created' && this.state !== 'running')
      throw new RuntimeError('InvalidState', `container "${this.id}" is ${this.state}`);
    await this.applyResources(resources);
    this.#resources = { ...this.#resources, ...resources };
    await writeAtomically(join(this.around.state.container(this.id), resourcesFile), JSON.stringify(this.#resources));
  }

  /** Reads the limits that {@link update} of an earlier runtime process has written. */
  async loadResources(): Promise<void> {
    const text = await readIfPresent(join(this.around.state.container(this.id), resourcesFile));
    if (text !== undefined) this.#resources = JSON.parse(text) as LinuxResources;
  }

  /** Resolves when the state has changed, at the latest after `withinMs`. */
  protected changed(withinMs: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#waiters.delete(done);
        resolve();
      };
      // Not injected: this timer must keep the process alive, which timers of a `Clock` do not.
      const timer = setTimeout(done, withinMs);
      this.#waiters.add(done);
    });
  }

  #publish(type: 'containerStarted' | 'containerExited' | 'containerRemoved', at: number): void {
    this.around.events.publish({ type, containerId: this.id, sandboxId: this.record.sandboxId, at });
    for (const wake of this.#waiters) wake();
  }
}
