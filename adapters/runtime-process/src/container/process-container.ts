import { join } from 'node:path';
import { type ProcessIdentity, signalProcess, writeAtomically } from '@keelson/container-host';
import {
  type Cgroups,
  type ContainerContext,
  type ExitRecord,
  MonitoredContainer,
  MonitoredSandbox,
  spawnMonitor,
} from '@keelson/container-monitor';
import { ExitReason, type LinuxResources, type PodSandboxStatus } from '@keelson/container-runtime';
import { findProgram, searchPathOf } from '../launch/launch-plan.ts';
import { launcher, startScript, terminalCommand } from '../launch/launch-script.ts';
import { processesOf } from '../machine/members.ts';
import type { ProcessRecord } from '../state/records.ts';

/** The dependencies that all containers of one process runtime share. */
export interface ProcessContext extends ContainerContext {
  readonly cgroups: Cgroups;
}

/** A container that consists of a process group of the machine and all processes with its marker. */
export class ProcessContainer extends MonitoredContainer<ProcessRecord> {
  readonly #around: ProcessContext;
  /** Program and arguments of the command, if this process started it. */
  #command: readonly string[] | undefined;

  constructor(around: ProcessContext, record: ProcessRecord) {
    super(around, record);
    this.#around = around;
  }

  protected override async launch(): Promise<void> {
    const { plan } = this.record;
    const [program = '', ...args] = plan.command;
    const root = plan.overlayLower ?? plan.root ?? '/';
    const path = await findProgram(root, program, searchPathOf(plan), plan.workingDir);
    this.#command = [path, ...args];
    await writeStartScript(this.#around, this.record, this.#command);
    await this.#around.keeper.request('keep', this.id);
    launchMonitor(this.#around, this.record, (error) => {
      void this.failStart(`the monitor cannot be started: ${error.message}`).catch(() => {});
    });
  }

  protected override isLauncher(commandLine: readonly string[]): boolean {
    const command = this.#command;
    return command !== undefined && isHelper(this.#around, this.record, command, commandLine);
  }

  protected override signalStop({ pid }: ProcessIdentity): void {
    signalProcess(-pid, Number(this.record.plan.stopSignal));
  }

  protected override async killAll(): Promise<void> {
    const members = await this.#around.cgroups.members(this.record.plan.cgroups);
    for (const { pid } of processesOf(this.id, this.identity)) signalProcess(pid, 'SIGKILL');
    for (const pid of members) signalProcess(pid, 'SIGKILL');
  }

  protected override async settle(exit: ExitRecord): Promise<ExitRecord> {
    const outOfMemory = exit.exitCode !== 0 && (await this.#around.cgroups.ranOutOfMemory(this.record.plan.cgroups));
    return outOfMemory ? { ...exit, reason: ExitReason.OutOfMemory } : exit;
  }

  protected override async applyResources(resources: LinuxResources): Promise<void> {
    await this.#around.cgroups.update(this.record.plan.cgroups, resources);
  }

  protected override async discard(): Promise<void> {
    await this.#around.cgroups.remove(this.record.plan.cgroups);
  }
}

function startScriptPath(around: ContainerContext, record: ProcessRecord): string {
  return join(around.state.container(record.id), 'start.sh');
}

/** Writes the start script of a container. The first element of `command` is an absolute path. */
export async function writeStartScript(
  around: ContainerContext,
  record: ProcessRecord,
  command: readonly string[],
): Promise<void> {
  const script = startScript({ ...record.plan, command }, around.state.run, record.id);
  await writeAtomically(startScriptPath(around, record), script, 0o500);
}

/** Starts the monitor, which starts the container. */
export function launchMonitor(around: ContainerContext, record: ProcessRecord, onError: (error: Error) => void): void {
  const { plan, config, id } = record;
  const slave = (config.mounts ?? []).some((mount) => mount.propagation === 'hostToContainer');
  const enter = plan.mountNamespace ? ['unshare', '--mount', `--propagation=${slave ? 'slave' : 'private'}`, '--'] : [];
  const start = [...enter, '/bin/sh', startScriptPath(around, record)];
  const terminal = join(around.state.container(id), 'terminal');
  spawnMonitor(around, id, config.tty ? terminalCommand(plan, terminal, start) : start, onError);
}

/**
 * Distinguishes the command lines of the helper programs from that of the command. The helpers execute each other in
 * one process, which executes the command last.
 */
export function isHelper(
  around: ContainerContext,
  record: ProcessRecord,
  command: readonly string[],
  commandLine: readonly string[],
): boolean {
  if (commandLine[1] === startScriptPath(around, record)) return true;
  const helpers = launcher(record.plan, command);
  // The command line of each helper is a suffix of the first one.
  const rest = helpers.slice(Math.max(0, helpers.length - commandLine.length));
  return (
    commandLine.length > command.length &&
    commandLine.length <= helpers.length &&
    rest.every((argument, at) => argument === commandLine[at])
  );
}

/** A pod: two files and its containers. It uses the network of the machine. */
export class ProcessSandbox extends MonitoredSandbox<ProcessContainer> {
  status(nodeIp: string): PodSandboxStatus {
    return {
      ...this.snapshot,
      ips: this.ready ? [nodeIp] : [],
      namespaces: { network: 'node', pid: 'node', ipc: 'node' },
    };
  }
}
