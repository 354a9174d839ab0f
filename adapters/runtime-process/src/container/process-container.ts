import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type Container,
  type ContainerState,
  type ContainerStatus,
  ExitReason,
  type LinuxResources,
  RuntimeError,
} from '@keelson/container-runtime';
import { findProgram } from '../launch/find-program.ts';
import { searchPathOf } from '../launch/make-plan.ts';
import { signalName } from '../launch/signals.ts';
import { isAlive, type ProcessIdentity, processesOf, readCommandLine, signalProcess } from '../machine/proc.ts';
import type { ContainerRecord } from '../state/records.ts';
import type { ExitRecord } from '../state/run-files.ts';
import { helperTest, spawnMonitor, writeStartScript } from './launch-container.ts';
import type { ContainerSurroundings } from './surroundings.ts';

/** How long a process may take from the monitor's start to its own; mounts included. */
const startTimeoutMs = 30_000;
const executeTimeoutMs = 2_000;
const executePollMs = 2;
/** An exit is reported without its last log lines when the log keeper takes longer than this. */
const logGraceMs = 2_000;
/** Between two rounds of SIGKILL for processes that keep appearing. */
const killAgainMs = 100;

/**
 * One container as its files tell. It is the same whether this process started it or found it: `refresh` reads, decides and announces,
 * everything else asks or waits.
 */
export class ProcessContainer {
  readonly record: ContainerRecord;
  readonly #around: ContainerSurroundings;
  readonly #waiters = new Set<() => void>();
  #resources: LinuxResources;
  #starting = false;
  #removed = false;
  #pid: ProcessIdentity | undefined;
  #startedAt: number | undefined;
  #exit: ExitRecord | undefined;
  #snapshot: Container;
  #refreshing: Promise<void> | undefined;
  #refreshAgain = false;

  constructor(around: ContainerSurroundings, record: ContainerRecord) {
    const { id, sandboxId, createdAt, imageId, config } = record;
    const { metadata, image, labels = {}, annotations = {} } = config;
    this.#around = around;
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

  /** Of the first process, once it was started. */
  get identity(): ProcessIdentity | undefined {
    return this.#pid;
  }

  /** It may need the log keeper. */
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
    const { plan } = this.record;
    const [program = '', ...args] = plan.command;
    const root = plan.overlayLower ?? plan.root ?? '/';
    let path: string;
    try {
      path = await findProgram(root, program, searchPathOf(plan), plan.workingDir);
    } catch (error) {
      if (error instanceof RuntimeError) await this.#failStart(error.message);
      throw error;
    }
    await writeStartScript(this.#around, this.record, [path, ...args]);
    await this.#around.keeper.request('keep', this.id);
    spawnMonitor(this.#around, this.record, (error) => {
      void this.#failStart(`the monitor does not start: ${error.message}`).catch(() => {});
    });
    const deadline = this.#around.clock.monotonic() + startTimeoutMs;
    while (this.state === 'created' && !this.#removed) {
      if (this.#around.clock.monotonic() > deadline) {
        await this.#failStart(`the process did not start within ${startTimeoutMs} ms`);
        break;
      }
      await this.#changed(250);
      await this.refresh();
    }
    await this.#executed([path, ...args]);
    if (this.#exit?.reason === ExitReason.StartError)
      throw new RuntimeError('StartFailed', this.#exit.message ?? 'the process did not start');
  }

  /** The process id is known a little before the command itself is executed; whoever started it shall not meet our helpers. */
  async #executed(command: readonly string[]): Promise<void> {
    const isHelper = helperTest(this.#around, this.record, command);
    const deadline = this.#around.clock.monotonic() + executeTimeoutMs;
    while (this.state === 'running' && this.#around.clock.monotonic() < deadline) {
      if (this.#pid === undefined || !isHelper(readCommandLine(this.#pid.pid))) return;
      await this.#changed(executePollMs);
    }
  }

  async #failStart(message: string): Promise<void> {
    await this.#around.runFiles.writeExit(this.id, 128, ExitReason.StartError, message);
    await this.refresh();
  }

  /** Reads the files and moves on if they say so. Calls at the same time share one pass, or wait for the next. */
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
    const { runFiles, clock } = this.#around;
    const exit = await runFiles.exit(this.id);
    if (this.#pid === undefined) {
      const process = await runFiles.process(this.id, 'pid');
      if (process !== undefined) this.#run(process.identity, process.at);
    }
    if (exit !== undefined) {
      const late = clock.now() - exit.finishedAt;
      const logged = this.#pid === undefined || (await runFiles.isLogged(this.id));
      if (logged || late > logGraceMs) await this.#end(exit);
      else this.#around.later(this, logGraceMs - late + 1);
      return;
    }
    await this.#findLost();
  }

  #run(identity: ProcessIdentity, at: number): void {
    // File times come from a coarser clock; what happened later must not look earlier.
    const startedAt = Math.max(Math.round(at), this.record.createdAt);
    this.#pid = identity;
    this.#startedAt = startedAt;
    this.#snapshot = { ...this.#snapshot, state: 'running' };
    this.#announce('containerStarted', startedAt);
  }

  /** Nobody is left who could write the exit down: the monitor was killed too, or the machine was started anew. */
  async #findLost(): Promise<void> {
    const { runFiles } = this.#around;
    const monitor = await runFiles.process(this.id, 'monitor');
    if (monitor === undefined || isAlive(monitor.identity)) return;
    if (this.#pid !== undefined && isAlive(this.#pid)) return;
    if ((await runFiles.exit(this.id)) !== undefined) {
      this.#refreshAgain = true; // written between our two looks
      return;
    }
    const message = 'the process ended while nobody watched it';
    await runFiles.writeExit(this.id, 137, ExitReason.Lost, message);
    this.#refreshAgain = true;
  }

  async #end(record: ExitRecord): Promise<void> {
    const { runFiles, cgroups } = this.#around;
    const earliest = this.#startedAt ?? this.record.createdAt;
    const exit = { ...record, finishedAt: Math.max(Math.round(record.finishedAt), earliest) };
    const failure = await runFiles.failure(this.id);
    const { cgroups: folders } = this.record.plan;
    this.#killAll(await cgroups.members(folders));
    if (failure !== undefined) this.#exit = { ...exit, reason: ExitReason.StartError, message: failure };
    else if (exit.exitCode !== 0 && (await cgroups.ranOutOfMemory(folders)))
      this.#exit = { ...exit, reason: ExitReason.OutOfMemory };
    else this.#exit = exit;
    this.#snapshot = { ...this.#snapshot, state: 'exited' };
    this.#announce('containerExited', exit.finishedAt);
  }

  /** Resolves when it does not run (any more). */
  async stop(gracePeriodMs: number): Promise<void> {
    await this.refresh();
    if (this.#starting) {
      while (this.#starting && this.state === 'created') await this.#changed(50);
    }
    if (this.state !== 'running' || this.#pid === undefined) return;
    if (gracePeriodMs > 0) {
      const { pid } = this.#pid;
      const signal = Number(this.record.plan.stopSignal);
      if (isAlive(this.#pid)) signalProcess(-pid, signal);
      await this.#ended(gracePeriodMs);
    }
    while (this.state === 'running') {
      this.#killAll(await this.#around.cgroups.members(this.record.plan.cgroups));
      await this.#ended(killAgainMs);
    }
  }

  async #ended(withinMs: number): Promise<void> {
    const deadline = this.#around.clock.monotonic() + withinMs;
    for (;;) {
      await this.refresh();
      const left = deadline - this.#around.clock.monotonic();
      if (this.state !== 'running' || left <= 0) return;
      await this.#changed(left);
    }
  }

  #killAll(members: readonly number[]): void {
    for (const { pid } of processesOf(this.id, this.#pid)) signalProcess(pid, 'SIGKILL');
    for (const pid of members) signalProcess(pid, 'SIGKILL');
  }

  async remove(): Promise<void> {
    if (this.#removed) return;
    await this.stop(0);
    if (this.#removed) return;
    this.#removed = true;
    const { state, runFiles, cgroups, keeper } = this.#around;
    const monitor = await runFiles.process(this.id, 'monitor');
    if (monitor !== undefined) {
      await keeper.request('drop', this.id).catch(() => {}); // without a keeper there is nothing to drop
      if (isAlive(monitor.identity)) signalProcess(monitor.identity.pid, 'SIGKILL');
    }
    await cgroups.remove(this.record.plan.cgroups);
    const trash = join(state.containers, `.${this.id}`);
    await rename(state.container(this.id), trash).catch(() => {});
    await runFiles.remove(this.id);
    await rm(trash, { recursive: true, force: true });
    this.#announce('containerRemoved', this.#around.clock.now());
  }

  async update(resources: LinuxResources): Promise<void> {
    if (this.state !== 'created' && this.state !== 'running')
      throw new RuntimeError('InvalidState', `container "${this.id}" is ${this.state}`);
    await this.#around.cgroups.update(this.record.plan.cgroups, resources);
    this.#resources = { ...this.#resources, ...resources };
  }

  /** Wakes those who wait for a change of the files. */
  wake(): void {
    for (const waiter of this.#waiters) waiter();
  }

  #changed(withinMs: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        cancel();
        this.#waiters.delete(done);
        resolve();
      };
      // Holds the process: somebody awaits this.
      const timer = setTimeout(done, withinMs);
      const cancel = () => clearTimeout(timer);
      this.#waiters.add(done);
    });
  }

  #announce(type: 'containerStarted' | 'containerExited' | 'containerRemoved', at: number): void {
    this.#around.events.publish({ type, containerId: this.id, sandboxId: this.record.sandboxId, at });
    this.wake();
  }
}
