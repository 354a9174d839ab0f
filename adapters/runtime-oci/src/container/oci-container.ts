import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { isAlive, type ProcessIdentity, signalProcess, tryTool, writeAtomically } from '@keelson/container-host';
import { type ExitRecord, MonitoredContainer, spawnMonitor } from '@keelson/container-monitor';
import { ExitReason, type LinuxResources } from '@keelson/container-runtime';
import { lastMessageIn } from '../binary/oci-binary.ts';
import type { OciSpec } from '../bundle/oci-spec.ts';
import { podsFolder } from '../bundle/pod-place.ts';
import { resourcesOf } from '../bundle/resources.ts';
import { launchCommand, type OciRecord } from '../launch/launch-command.ts';
import type { OciContext } from './oci-context.ts';

/** A container that the OCI binary creates from a bundle. */
export class OciContainer extends MonitoredContainer<OciRecord> {
  readonly #around: OciContext;

  constructor(around: OciContext, record: OciRecord) {
    super(around, record);
    this.#around = around;
  }

  get folder(): string {
    return this.#around.state.container(this.id);
  }

  /** Paths of the container's cgroup in all hierarchies that have a controller of containers. */
  get cgroups(): readonly string[] {
    return this.#around.cgroups.foldersOf(this.record.cgroup);
  }

  get #log(): string {
    return join(this.folder, 'oci.log');
  }

  protected override async launch(): Promise<void> {
    const { keeper, programs, binary, state } = this.#around;
    await keeper.request('keep', this.id);
    const places = {
      programs,
      binary,
      run: join(state.run, this.id),
      folder: this.folder,
      log: this.#log,
      pods: podsFolder(state),
    };
    spawnMonitor(this.#around, this.id, launchCommand(places, this.record), (error) => {
      void this.failStart(`the monitor cannot be started: ${error.message}`).catch(() => {});
    });
  }

  /** The binary reports its process ID shortly before it executes the command. */
  protected override isLauncher([program = '', argument]: readonly string[]): boolean {
    return basename(program) === basename(this.#around.binary.path) && argument === 'init';
  }

  protected override signalStop({ pid }: ProcessIdentity): void {
    signalProcess(pid, this.record.stopSignal);
  }

  protected override async killAll(): Promise<void> {
    const { identity } = this;
    if (identity !== undefined && isAlive(identity)) signalProcess(identity.pid, 'SIGKILL');
    for (const pid of await this.#around.cgroups.members(this.cgroups)) signalProcess(pid, 'SIGKILL');
  }

  /** Kills the processes that the first process left behind, because the reaper ends only after them. */
  protected override async inspectRunning(identity: ProcessIdentity): Promise<void> {
    if (!this.record.ownPids && !isAlive(identity)) await this.killAll();
  }

  protected override async settle(exit: ExitRecord): Promise<ExitRecord> {
    const { runFiles, cgroups, binary } = this.#around;
    let settled = exit;
    if (exit.reason === undefined && exit.exitCode !== 0 && (await cgroups.ranOutOfMemory(this.cgroups))) {
      settled = { ...exit, reason: ExitReason.OutOfMemory };
      // The reason is recorded now, because it cannot be determined again once the cgroup is removed.
      await runFiles.writeExit(this.id, settled);
    }
    await binary.delete(this.id);
    return settled;
  }

  protected override async describeFailure(text: string): Promise<string> {
    return text || (await lastMessageIn(this.#log)) || `${this.#around.binary.version.name} reported no reason`;
  }

  protected override async applyResources(resources: LinuxResources): Promise<void> {
    const { binary, machine } = this.#around;
    const changes = resourcesOf(resources, machine.swapLimits);
    if (this.state === 'running') {
      // The limits are passed as a file, because not every binary can read them from a pipe.
      const file = join(this.folder, 'update.json');
      await writeAtomically(file, JSON.stringify(changes));
      await binary.update(this.id, file);
      return;
    }
    const path = join(this.folder, 'config.json');
    const spec = JSON.parse(await readFile(path, 'utf8')) as OciSpec;
    const merged = resourcesOf({ ...this.resources, ...resources }, machine.swapLimits);
    const { devices } = spec.linux.resources;
    await writeAtomically(
      path,
      JSON.stringify({ ...spec, linux: { ...spec.linux, resources: { ...merged, devices } } }),
    );
  }

  protected override async discard(): Promise<void> {
    await this.#around.binary.delete(this.id);
    // The root is mounted on the machine only for a container with bidirectional mount propagation whose state
    // directory is on a shared mount.
    const root = join(this.folder, 'rootfs');
    const mounts = await readFile('/proc/self/mountinfo', 'utf8');
    if (mounts.includes(` ${root} `)) await tryTool('umount', ['--recursive', '--lazy', root]);
  }
}
