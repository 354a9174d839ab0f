import { mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { CommonSandbox, OpenedEngine, Program, RuntimeHarness } from '@keelson/conformance';
import type { ContainerEngine, RuntimeCapabilities, SandboxId } from '@keelson/container-runtime';
import type { Containerd } from '@keelson/test-support';
import { createCriRuntime } from '../../src/index.ts';

export interface OpenedCri extends OpenedEngine {
  readonly containerd: Containerd;
  readonly folder: string;
}

type KeptSandbox = Required<CommonSandbox>;

/** True also when the process has ended. */
async function ignoresTerm(pid = 0): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/status`, 'latin1').catch(() => '');
  const mask = /^SigIgn:\s+([0-9a-f]+)$/m.exec(status)?.[1];
  return mask === undefined || (BigInt(`0x${mask}`) & (1n << 14n)) !== 0n;
}

/** Whether a process has the file open. */
async function hasOpen(pid: number, path: string): Promise<boolean> {
  const descriptors = `/proc/${pid}/fd`;
  const targets = (await readdir(descriptors)).map((name) => readlink(join(descriptors, name)).catch(() => ''));
  return (await Promise.all(targets)).includes(path);
}

/** Removes all pods and containers, and throws if any remain. */
export async function removeAll({ runtime }: ContainerEngine): Promise<void> {
  const sandboxes = await runtime.listPodSandboxes();
  await Promise.all(sandboxes.map(({ id }) => runtime.removePodSandbox(id)));
  const left = [...(await runtime.listPodSandboxes()), ...(await runtime.listContainers())];
  if (left.length > 0) throw new Error(`something is left: ${left.map(({ id }) => id).join(', ')}`);
}

/**
 * The suite's scripts leave files in folders of the host: every container sees them under the same path. `hidden` is in
 * no list of sandboxes: a case expects that only its own exist.
 */
function asSeenByCases({ runtime, images }: ContainerEngine, folder: string, hidden?: SandboxId): ContainerEngine {
  const shared = { hostPath: folder, containerPath: folder };
  const createContainer: ContainerEngine['runtime']['createContainer'] = (sandboxId, config, options) =>
    runtime.createContainer(sandboxId, { ...config, mounts: [shared, ...(config.mounts ?? [])] }, options);
  const listPodSandboxes: ContainerEngine['runtime']['listPodSandboxes'] = async (...args) =>
    (await runtime.listPodSandboxes(...args)).filter(({ id }) => id !== hidden);
  return { runtime: { ...runtime, createContainer, listPodSandboxes }, images };
}

async function makeCommonSandbox({ endpoint }: Containerd): Promise<KeptSandbox> {
  const { runtime } = await createCriRuntime({ endpoint });
  const logDirectory = await mkdtemp('/tmp/keelson-cri-logs-');
  const metadata = { name: 'common', namespace: 'suite', uid: 'common', attempt: 0 };
  const id = await runtime.runPodSandbox({ metadata, logDirectory });
  await runtime[Symbol.asyncDispose]();
  return { id, logDirectory };
}

/**
 * A pool of daemons: each runs one case at a time and is empty at its start, except for a hidden sandbox that remains
 * for later cases: a sandbox costs more processor time than most cases.
 */
export class CriPool {
  readonly #idle: Containerd[];
  readonly #kept = new Map<Containerd, KeptSandbox>();
  readonly all: readonly Containerd[];

  constructor(all: readonly Containerd[]) {
    this.all = all;
    this.#idle = [...all];
  }

  async open(): Promise<OpenedCri> {
    return this.#opened(this.#take(), await mkdtemp('/tmp/keelson-cri-'));
  }

  async openCommon(): Promise<OpenedCri> {
    const containerd = this.#take();
    const common = this.#kept.get(containerd) ?? (await makeCommonSandbox(containerd));
    this.#kept.set(containerd, common);
    const opened = await this.#opened(containerd, await mkdtemp('/tmp/keelson-cri-'));
    return { ...opened, common };
  }

  async reopen({ engine, containerd, folder }: OpenedCri): Promise<OpenedCri> {
    await engine.runtime[Symbol.asyncDispose]();
    return this.#opened(containerd, folder);
  }

  /** Removes the logs of the kept sandboxes, which end with their daemons. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const { logDirectory } of this.#kept.values()) await rm(logDirectory, { recursive: true });
    await Promise.all(this.all.map((containerd) => containerd[Symbol.asyncDispose]()));
  }

  /** Removes the containers of the kept sandbox, and itself when the case has broken it. */
  async #emptyKept(containerd: Containerd, { runtime }: ContainerEngine): Promise<void> {
    const sandboxId = this.#kept.get(containerd)?.id;
    if (sandboxId === undefined) return;
    try {
      const containers = await runtime.listContainers({ sandboxId });
      await Promise.all(containers.map(({ id }) => runtime.removeContainer(id)));
      const { state } = await runtime.podSandboxStatus(sandboxId);
      if (state !== 'ready') throw new Error(`the kept sandbox is ${state}`);
    } catch (error) {
      this.#kept.delete(containerd);
      await runtime.removePodSandbox(sandboxId);
      throw error;
    }
  }

  #take(): Containerd {
    const containerd = this.#idle.pop();
    if (containerd === undefined) throw new Error('more cases at once than daemons');
    return containerd;
  }

  async #opened(containerd: Containerd, folder: string): Promise<OpenedCri> {
    const kept = this.#kept.get(containerd)?.id;
    const engine = asSeenByCases(await createCriRuntime({ endpoint: containerd.endpoint }), folder, kept);
    const dispose = async () => {
      try {
        await this.#emptyKept(containerd, engine);
        await removeAll(engine);
        await engine.runtime[Symbol.asyncDispose]();
        await rm(folder, { recursive: true, force: true });
      } finally {
        this.#idle.push(containerd);
      }
    };
    return { engine, containerd, folder, dispose };
  }
}

export function criHarness(
  pool: CriPool,
  capabilities: RuntimeCapabilities,
  images: { readonly pullableImage: string; readonly missingImage: string },
): RuntimeHarness<OpenedCri> {
  const image = pool.all[0]?.busyboxImage ?? '';
  // Busybox's shell becomes the last command of a script, and leaves it with a signal ignored, unless something
  // follows.
  const shell = (script: string): Program => ({ image, command: ['/bin/sh', '-c', `${script}\nexit`] });
  return {
    name: 'cri',
    capabilities,
    concurrency: pool.all.length,
    loadPods: 9,
    // Before version 2.2 the shim waits two seconds at most for output on the way to containerd, then drops it
    // (containerd issue 12289): on a busy machine some of 490 KB is lost, but nothing of what one buffer holds.
    logLines: 500,
    ...images,
    open: () => pool.open(),
    openCommon: () => pool.openCommon(),
    reopen: (opened) => pool.reopen(opened),
    // containerd reports an exit when it has read all output, of which up to 16 KB are then still in its buffers.
    logIsComplete: async ({ containerd }, path) => !(await hasOpen(containerd.pid, path)),
    program: (intent) => {
      if (intent.kind === 'run') return { image, command: ['sleep', '100000'] };
      if (intent.kind === 'stubborn') return shell('trap "" TERM; while :; do sleep 100000; done');
      if (intent.kind === 'cannotStart') return { image, command: ['/no/such/program'] };
      return shell(`sleep ${(intent.afterMs ?? 0) / 1000}; exit ${intent.code}`);
    },
    settled: async ({ engine }, id, intent) => {
      if (intent.kind !== 'stubborn') return;
      const { pid } = await engine.runtime.containerStatus(id);
      while (!(await ignoresTerm(pid))) await new Promise((resolve) => setTimeout(resolve, 5));
    },
    shell,
    printf: (...args) => ({ image, command: ['printf'], args }),
    scratch: ({ folder }) => mkdtemp(join(folder, 'scratch-')),
    otherUser: { uid: 65534, gid: 65534 },
  };
}
