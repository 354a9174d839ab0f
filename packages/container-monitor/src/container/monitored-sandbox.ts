import { join } from 'node:path';
import type { PodSandbox, PodSandboxStatus } from '@keelson/container-runtime';
import { readIfPresent, removeIfPresent, writeAtomically } from '../machine/atomic-file.ts';
import type { SandboxRecord } from '../state/records.ts';
import type { ContainerContext } from './container-context.ts';
import type { MonitoredContainer } from './monitored-container.ts';

/** A pod's environment: two files and the containers that name it. Adapters add what else their pods have. */
export abstract class MonitoredSandbox<
  C extends MonitoredContainer = MonitoredContainer,
  R extends SandboxRecord = SandboxRecord,
> {
  readonly record: R;
  readonly containers = new Set<C>();
  readonly #around: ContainerContext;
  #snapshot: PodSandbox;
  #stopping: Promise<void> | undefined;
  #removed = false;

  constructor(around: ContainerContext, record: R, ready: boolean) {
    const { id, createdAt, config } = record;
    const { metadata, labels = {}, annotations = {} } = config;
    this.#around = around;
    this.record = record;
    this.#snapshot = { id, metadata, createdAt, labels, annotations, state: ready ? 'ready' : 'notReady' };
  }

  get id(): string {
    return this.record.id;
  }

  get ready(): boolean {
    return this.#snapshot.state === 'ready';
  }

  get snapshot(): PodSandbox {
    return this.#snapshot;
  }

  static async write(around: ContainerContext, record: SandboxRecord): Promise<void> {
    await writeAtomically(join(around.state.sandboxes, `${record.id}.json`), JSON.stringify(record));
  }

  /**
   * Before the record is written, for a sandbox that takes time to make: should that be cut short, it is found as one
   * that is not ready.
   */
  static async writeStopped(around: ContainerContext, id: string): Promise<void> {
    await writeAtomically(join(around.state.sandboxes, `${id}.stopped`), '');
  }

  /** What {@link writeStopped} said is not so any more. */
  static async clearStopped(around: ContainerContext, id: string): Promise<void> {
    await removeIfPresent(join(around.state.sandboxes, `${id}.stopped`));
  }

  static async wasStopped(around: ContainerContext, id: string): Promise<boolean> {
    return (await readIfPresent(join(around.state.sandboxes, `${id}.stopped`))) !== undefined;
  }

  /** Harmless when repeated; what did not succeed is tried again then. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop().finally(() => {
      this.#stopping = undefined;
    });
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    if (this.#removed) return;
    if (this.ready) {
      // First of all, so that nobody puts another container into it meanwhile.
      this.#snapshot = { ...this.#snapshot, state: 'notReady' };
      await MonitoredSandbox.writeStopped(this.#around, this.id);
      this.#announce('sandboxNotReady');
    }
    await Promise.all([...this.containers].map((container) => container.stop(0)));
    await this.release();
  }

  async remove(): Promise<void> {
    await this.stop();
    await Promise.all([...this.containers].map((container) => container.remove()));
    if (this.#removed) return;
    this.#removed = true;
    await this.discard();
    // The record after everything else, so that what is left is found again; but before the mark, or the sandbox would
    // seem ready.
    await removeIfPresent(join(this.#around.state.sandboxes, `${this.id}.json`));
    await MonitoredSandbox.clearStopped(this.#around, this.id);
    this.#announce('sandboxRemoved');
  }

  /** `nodeIp` is the address of pods that use the machine's network. */
  abstract status(nodeIp: string): PodSandboxStatus;

  /** Gives back what only a running pod needs; called with no container running, perhaps more than once. */
  protected async release(): Promise<void> {}

  /** Removes what is left besides the record. */
  protected async discard(): Promise<void> {}

  #announce(type: 'sandboxNotReady' | 'sandboxRemoved'): void {
    this.#around.events.publish({ type, sandboxId: this.id, at: this.#around.clock.now() });
  }
}
