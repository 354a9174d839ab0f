import type { ContainerEngine, ContainerId, ContainerStatus, SandboxId } from '@keelson/container-runtime';
import { Containerd, lackingForContainerd } from '@keelson/test-support';
import ava, { type ExecutionContext } from 'ava';
import { type CriRuntimeOptions, createCriRuntime } from '../../src/index.ts';
import { removeAll } from './cri-harness.ts';

/** The one containerd of a process, and pods on it. Test files that share the process use it one after the other. */
export class SharedContainerd {
  readonly containerd: Containerd;
  readonly engine: ContainerEngine;
  /**
   * containerd 1 also supports `v1alpha2`, and reports how containers ended while it was stopped; containerd 2
   * does neither.
   */
  readonly isOld: boolean;
  /** Timers and idle connections are unreferenced, and this wait has to keep the process alive. */
  readonly #hold = setInterval(() => {}, 1000);
  #names = 0;
  /** Number of test files whose tests have not all ended. */
  #files = 0;
  static #opened: Promise<SharedContainerd | undefined> | undefined;

  private constructor(containerd: Containerd, engine: ContainerEngine, version: string) {
    this.isOld = version.startsWith('1.');
    this.containerd = containerd;
    this.engine = engine;
  }

  /** Undefined where containerd cannot run; the tests of the file are then skipped. */
  static open(): Promise<SharedContainerd | undefined> {
    SharedContainerd.#opened ??= SharedContainerd.#start();
    return SharedContainerd.#opened;
  }

  static async #start(): Promise<SharedContainerd | undefined> {
    if (lackingForContainerd().length > 0) return undefined;
    const containerd = await Containerd.start();
    const engine = await createCriRuntime({ endpoint: containerd.endpoint });
    return new SharedContainerd(containerd, engine, (await engine.runtime.version()).runtimeVersion);
  }

  another(options: Partial<CriRuntimeOptions> = {}): Promise<ContainerEngine> {
    return createCriRuntime({ endpoint: this.containerd.endpoint, ...options });
  }

  sandbox(config: Partial<Parameters<ContainerEngine['runtime']['runPodSandbox']>[0]> = {}): Promise<SandboxId> {
    this.#names += 1;
    const metadata = { name: `pod-${this.#names}`, namespace: 'test', uid: `uid-${this.#names}`, attempt: 0 };
    return this.engine.runtime.runPodSandbox({ metadata, ...config });
  }

  /** A running container of a shell script. */
  async started(
    script: string,
    config: Partial<Parameters<ContainerEngine['runtime']['createContainer']>[1]> = {},
    sandboxId?: SandboxId,
  ): Promise<ContainerId> {
    const { runtime } = this.engine;
    this.#names += 1;
    const id = await runtime.createContainer(sandboxId ?? (await this.sandbox()), {
      metadata: { name: `container-${this.#names}`, attempt: 0 },
      image: this.containerd.busyboxImage,
      command: ['/bin/sh', '-c', script],
      ...config,
    });
    await runtime.startContainer(id);
    return id;
  }

  /** The output of a shell script in a container. */
  async output(id: ContainerId, script: string): Promise<string> {
    const { stdout } = await this.engine.runtime.execSync(id, { command: ['/bin/sh', '-c', script] });
    return Buffer.from(stdout).toString();
  }

  /** The status of a container once it has ended. */
  async ended(id: ContainerId): Promise<ContainerStatus> {
    const deadline = performance.now() + 15_000;
    for (;;) {
      const status = await this.engine.runtime.containerStatus(id);
      if (status.state === 'exited') return status;
      if (performance.now() > deadline) throw new Error(`the container is ${status.state}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** To be called by each test file when it declares its tests. */
  acquire(): void {
    this.#files += 1;
  }

  /** To be called when the tests of a file have ended: removes their pods, and after the last file containerd. */
  async release(): Promise<void> {
    this.#files -= 1;
    try {
      await removeAll(this.engine);
    } finally {
      if (this.#files === 0) {
        clearInterval(this.#hold);
        await this.engine.runtime[Symbol.asyncDispose]();
        await this.containerd[Symbol.asyncDispose]();
      }
    }
  }
}

/** A test that needs containerd: skipped visibly without it. These tests run one after the other. */
export function testsOn(shared: SharedContainerd | undefined) {
  shared?.acquire();
  if (shared !== undefined) ava.after.always(() => shared.release());
  return (title: string, body: (t: ExecutionContext, shared: SharedContainerd) => Promise<void>): void => {
    if (shared === undefined) ava.skip(`${title} [not run, there is no containerd]`, () => {});
    else ava.serial(title, (t) => body(t, shared));
  };
}
