import { type ProcessIdentity, readCommandLine, signalProcess } from '@keelson/container-host';
import { type ExitRecord, MonitoredContainer } from '@keelson/container-monitor';
import { ExitReason, type LinuxResources } from '@keelson/container-runtime';
import { findProgram } from '../launch/find-program.ts';
import { searchPathOf } from '../launch/make-plan.ts';
import { processesOf } from '../machine/members.ts';
import type { ProcessRecord } from '../state/records.ts';
import { helperTest, launchMonitor, writeStartScript } from './launch-container.ts';
import type { ProcessContext } from './process-context.ts';

const executeTimeoutMs = 2_000;
const executePollMs = 2;

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

  /**
   * Waits until the process executes the command. The process ID is recorded before that, while the process still
   * executes helper programs, which callers must not observe.
   */
  protected override async executed(): Promise<void> {
    if (this.#command === undefined) return;
    const isHelper = helperTest(this.#around, this.record, this.#command);
    const deadline = this.#around.clock.monotonic() + executeTimeoutMs;
    while (this.state === 'running' && this.#around.clock.monotonic() < deadline) {
      if (this.identity === undefined || !isHelper(readCommandLine(this.identity.pid))) return;
      await this.changed(executePollMs);
    }
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
