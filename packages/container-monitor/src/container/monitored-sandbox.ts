import { join } from 'node:path';
import { readIfPresent, removeIfPresent, writeAtomically } from '@keelson/container-host';
import type { PodSandbox, PodSandboxStatus } from '@keelson/container-runtime';
import type { SandboxRecord } from '../state/state-directory.ts';
import type { ContainerContext } from './container-context.ts';
import type { MonitoredContainer } from './monitored-container.ts';

/** The sandbox of a pod: its files and its containers. Adapters add further resources, such as namespaces. */
export abstract class MonitoredSandbox<
  C extends MonitoredContainer = MonitoredContainer,
  R extends SandboxRecord = SandboxRecord,
> {
  readonly record: R;
  readonly containers = new Set<C>();
  readonly #around: ContainerContext;
  #snapshot: PodSandbox;
  #stopping: Promise<void> | undefined;
  #removing: Promise<void> | undefined;
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
   * Marks a sandbox as stopped. An adapter whose sandboxes take time to create calls it before it writes the record, so
   * that an interrupted creation leaves a sandbox that is not ready.
   */
  static async writeStopped(around: ContainerContext, id: string): Promise<void> {
    await writeAtomically(join(around.state.sandboxes, `${id}.stopped`), '');
  }

  /** Removes the mark of {@link writeStopped}. */
  static async clearStopped(around: ContainerContext, id: string): Promise<void> {
    await removeIfPresent(join(around.state.sandboxes, `${id}.stopped`));
  }

  static async wasStopped(around: ContainerContext, id: string): Promise<boolean> {
    return (await readIfPresent(join(around.state.sandboxes, `${id}.stopped`))) !== undefined;
  }

  /** Stops all containers and releases the resources of the sandbox. Can be repeated after a failure. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop().finally(() => {
      this.#stopping = undefined;
    });
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    if (this.#removed) return;
    if (this.ready) {
      // The state is changed before the containers are stopped, so that no further container is created in the sandbox.
      this.#snapshot = { ...this.#snapshot, state: 'notReady' };
      await MonitoredSandbox.writeStopped(this.#around, this.id);
      this.#publish('sandboxNotReady');
    }
    await Promise.all([...this.containers].map((container) => container.stop(0)));
    await this.release();
  }

  /** Stops and removes all containers, and removes the sandbox. Can be repeated after a failure. */
  remove(): Promise<void> {
    this.#removing ??= this.#remove().catch((error: unknown) => {
      this.#removing = undefined;
      throw error;
    });
    return this.#removing;
  }

  async #remove(): Promise<void> {
    await this.stop();
    await Promise.all([...this.containers].map((container) => container.remove()));
    this.#removed = true;
    await this.discard();
    // The record is removed after all resources, so that an interrupted removal can be continued. The mark of a stopped
    // sandbox is removed after the record, because a record without the mark is a ready sandbox.
    await removeIfPresent(join(this.#around.state.sandboxes, `${this.id}.json`));
    await MonitoredSandbox.clearStopped(this.#around, this.id);
    this.#publish('sandboxRemoved');
  }

  /** The status; `nodeIp` is the address of pods that use the network of the node. */
  abstract status(nodeIp: string): PodSandboxStatus;

  /** Releases the resources that only a running pod needs. Called without running containers, possibly repeatedly. */
  protected async release(): Promise<void> {}

  /** Removes the remaining resources except the record. */
  protected async discard(): Promise<void> {}

  #publish(type: 'sandboxNotReady' | 'sandboxRemoved'): void {
    this.#around.events.publish({ type, sandboxId: this.id, at: this.#around.clock.now() });
  }
}
