import type { PodSandbox, PodSandboxConfig, PodSandboxStatus, SandboxId } from '@keelson/container-runtime';
import type { FakeContainer } from './fake-container.ts';
import type { FakeWorld } from './fake-world.ts';

/** A pod's environment in the fake world. */
export class FakeSandbox {
  readonly id: SandboxId;
  readonly config: PodSandboxConfig;
  readonly containers = new Set<FakeContainer>();
  readonly #world: FakeWorld;
  readonly #status: Omit<PodSandboxStatus, 'state' | 'ips'>;
  readonly #ip: string;
  #snapshot: PodSandbox;

  constructor(world: FakeWorld, config: PodSandboxConfig) {
    const index = world.nextIndex();
    const { metadata, labels = {}, annotations = {} } = config;
    const id = `sandbox-${index}`;
    this.#world = world;
    this.id = id;
    this.config = config;
    this.#ip = world.podIp(index);
    const namespaces = config.securityContext?.namespaces ?? { network: 'pod', pid: 'container', ipc: 'pod' };
    this.#status = { id, metadata, labels, annotations, createdAt: world.clock.now(), namespaces };
    this.#snapshot = { id, metadata, labels, annotations, createdAt: this.#status.createdAt, state: 'ready' };
    world.add(this);
    world.events.publish({ type: 'sandboxReady', sandboxId: id, at: world.clock.now() });
  }

  get ready(): boolean {
    return this.#snapshot.state === 'ready';
  }

  get snapshot(): PodSandbox {
    return this.#snapshot;
  }

  status(): PodSandboxStatus {
    const { id, metadata, labels, annotations, createdAt, namespaces } = this.#status;
    const { state } = this.#snapshot;
    return { id, metadata, labels, annotations, createdAt, namespaces, state, ips: this.ready ? [this.#ip] : [] };
  }

  stop(): void {
    if (!this.ready) return;
    this.#snapshot = { ...this.#snapshot, state: 'notReady' };
    this.#world.events.publish({ type: 'sandboxNotReady', sandboxId: this.id, at: this.#world.clock.now() });
  }

  remove(): void {
    if (!this.#world.delete(this)) return;
    this.#world.events.publish({ type: 'sandboxRemoved', sandboxId: this.id, at: this.#world.clock.now() });
  }
}
