import { join } from 'node:path';
import type { PodSandbox, PodSandboxStatus } from '@keelson/container-runtime';
import { readIfPresent, removeIfPresent, writeAtomically } from '../state/atomic-file.ts';
import type { SandboxRecord } from '../state/records.ts';
import type { ProcessContainer } from './process-container.ts';
import type { ContainerSurroundings } from './surroundings.ts';

/** A pod's environment: two files and the containers that name it. It uses the machine's network. */
export class ProcessSandbox {
  readonly record: SandboxRecord;
  readonly containers = new Set<ProcessContainer>();
  readonly #around: ContainerSurroundings;
  #snapshot: PodSandbox;
  #removed = false;

  constructor(around: ContainerSurroundings, record: SandboxRecord, ready: boolean) {
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

  status(nodeIp: string): PodSandboxStatus {
    return {
      ...this.#snapshot,
      ips: this.ready ? [nodeIp] : [],
      namespaces: { network: 'node', pid: 'node', ipc: 'node' },
    };
  }

  static async write(around: ContainerSurroundings, record: SandboxRecord): Promise<void> {
    await writeAtomically(join(around.state.sandboxes, `${record.id}.json`), JSON.stringify(record));
  }

  static async wasStopped(around: ContainerSurroundings, id: string): Promise<boolean> {
    return (await readIfPresent(join(around.state.sandboxes, `${id}.stopped`))) !== undefined;
  }

  async stop(): Promise<void> {
    if (this.ready && !this.#removed) {
      // First of all, so that nobody puts another container into it meanwhile.
      this.#snapshot = { ...this.#snapshot, state: 'notReady' };
      await writeAtomically(join(this.#around.state.sandboxes, `${this.id}.stopped`), '');
      this.#announce('sandboxNotReady');
    }
    await Promise.all([...this.containers].map((container) => container.stop(0)));
  }

  async remove(): Promise<void> {
    await this.stop();
    await Promise.all([...this.containers].map((container) => container.remove()));
    if (this.#removed) return;
    this.#removed = true;
    await removeIfPresent(join(this.#around.state.sandboxes, `${this.id}.json`));
    await removeIfPresent(join(this.#around.state.sandboxes, `${this.id}.stopped`));
    this.#announce('sandboxRemoved');
  }

  #announce(type: 'sandboxNotReady' | 'sandboxRemoved'): void {
    this.#around.events.publish({ type, sandboxId: this.id, at: this.#around.clock.now() });
  }
}
