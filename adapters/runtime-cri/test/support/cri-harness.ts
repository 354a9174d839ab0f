import { mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { OpenedEngine, Program, RuntimeHarness } from '@keelson/conformance';
import type { ContainerEngine, RuntimeCapabilities } from '@keelson/container-runtime';
import type { Containerd } from '@keelson/test-support';
import { createCriRuntime } from '../../src/index.ts';

export interface OpenedCri extends OpenedEngine {
  readonly containerd: Containerd;
  readonly folder: string;
}

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

/** The suite's scripts leave files in folders of the host: every container sees them under the same path. */
function withFolder({ runtime, images }: ContainerEngine, folder: string): ContainerEngine {
  const shared = { hostPath: folder, containerPath: folder };
  const createContainer: ContainerEngine['runtime']['createContainer'] = (sandboxId, config, options) =>
    runtime.createContainer(sandboxId, { ...config, mounts: [shared, ...(config.mounts ?? [])] }, options);
  return { runtime: { ...runtime, createContainer }, images };
}

/** A pool of daemons: each runs one case at a time and is empty at its start. */
export class CriPool {
  readonly #idle: Containerd[];
  readonly all: readonly Containerd[];

  constructor(all: readonly Containerd[]) {
    this.all = all;
    this.#idle = [...all];
  }

  async open(): Promise<OpenedCri> {
    const containerd = this.#idle.pop();
    if (containerd === undefined) throw new Error('more cases at once than daemons');
    return this.#opened(containerd, await mkdtemp('/tmp/keelson-cri-'));
  }

  async reopen({ engine, containerd, folder }: OpenedCri): Promise<OpenedCri> {
    await engine.runtime[Symbol.asyncDispose]();
    return this.#opened(containerd, folder);
  }

  async #opened(containerd: Containerd, folder: string): Promise<OpenedCri> {
    const engine = withFolder(await createCriRuntime({ endpoint: containerd.endpoint }), folder);
    const dispose = async () => {
      try {
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
    ...images,
    open: () => pool.open(),
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
