import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { CommonSandbox, OpenedEngine, Program, RuntimeHarness } from '@keelson/conformance';
import type { ContainerEngine, RuntimeCapabilities, SandboxId } from '@keelson/container-runtime';
import type { Podman } from '@keelson/test-support';
import { createEngineRuntime, type EngineRuntimeOptions } from '../../src/index.ts';

export interface OpenedPodman extends OpenedEngine {
  readonly podman: Podman;
  readonly folder: string;
  readonly options: EngineRuntimeOptions;
}

/** An engine on this Podman, separated from others by its owner. */
export async function openEngine(
  podman: Podman,
  change: Partial<EngineRuntimeOptions> = {},
  folder?: string,
): Promise<OpenedPodman> {
  const place = folder ?? (await mkdtemp('/tmp/keelson-engine-'));
  const options: EngineRuntimeOptions = {
    endpoint: podman.endpoint,
    infraImage: podman.pauseImage,
    stateDirectory: join(place, 'state'),
    owner: randomBytes(6).toString('hex'),
    ...change,
  };
  const engine = await createEngineRuntime(options);
  const dispose = async () => {
    await removeAll(engine);
    await engine.runtime[Symbol.asyncDispose]();
    await rm(place, { recursive: true, force: true });
  };
  return { engine, podman, folder: place, options, dispose };
}

/** Removes all pods, of `kept` only its containers, and throws if any others or containers remain. */
async function removeAll({ runtime }: ContainerEngine, kept?: SandboxId): Promise<void> {
  const sandboxes = async () => (await runtime.listPodSandboxes()).filter(({ id }) => id !== kept);
  await Promise.all((await sandboxes()).map(({ id }) => runtime.removePodSandbox(id)));
  if (kept !== undefined) {
    const containers = await runtime.listContainers({ sandboxId: kept });
    await Promise.all(containers.map(({ id }) => runtime.removeContainer(id)));
    const { state } = await runtime.podSandboxStatus(kept);
    if (state !== 'ready') throw new Error(`the kept sandbox is ${state}`);
  }
  const left = [...(await sandboxes()), ...(await runtime.listContainers())];
  if (left.length > 0) throw new Error(`something is left: ${left.map(({ id }) => id).join(', ')}`);
}

/** The folder of a test is mounted into every container at its own path. */
function withFolder({ runtime, images }: ContainerEngine, folder: string): ContainerEngine {
  const mount = { hostPath: folder, containerPath: folder };
  const createContainer: typeof runtime.createContainer = (sandboxId, config, options) =>
    runtime.createContainer(sandboxId, { ...config, mounts: [...(config.mounts ?? []), mount] }, options);
  return {
    runtime: new Proxy(runtime, {
      get: (target, key) => (key === 'createContainer' ? createContainer : Reflect.get(target, key)),
    }),
    images,
  };
}

/** True also when the process has ended. */
async function ignoresTerm(pid = 0): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/status`, 'latin1').catch(() => '');
  const mask = /^SigIgn:\s+([0-9a-f]+)$/m.exec(status)?.[1];
  return mask === undefined || (BigInt(`0x${mask}`) & (1n << 14n)) !== 0n;
}

/**
 * A pool of Podmans: each runs one case at a time, since cases of images need exclusive use of the store. On each, an
 * engine with a sandbox remains for later cases until the harness is disposed of: a sandbox costs more processor time
 * than most cases.
 */
export function engineHarness(
  pool: readonly Podman[],
  capabilities: RuntimeCapabilities,
  extra: Pick<RuntimeHarness, 'pullableImage' | 'missingImage'>,
): RuntimeHarness<OpenedPodman> & AsyncDisposable {
  const idle = [...pool];
  const kept = new Map<Podman, OpenedPodman & { readonly common: CommonSandbox }>();
  const take = (): Podman => {
    const podman = idle.pop();
    if (podman === undefined) throw new Error('more cases at once than engines');
    return podman;
  };
  const image = pool[0]?.busyboxImage ?? '';
  // A command follows: one that the shell of busybox executes in its own place would inherit that it ignores SIGQUIT.
  const shell = (script: string): Program => ({ image, command: ['/bin/sh', '-c', `${script}\nexit $?`] });
  const open = async (podman: Podman, opened?: OpenedPodman): Promise<OpenedPodman> => {
    // Containers are no first process of their namespace: that one ignores signals which it does not handle.
    const next = await openEngine(podman, opened?.options ?? { sharedPid: true }, opened?.folder);
    const dispose = () => next.dispose().finally(() => idle.push(podman));
    return { ...next, dispose, engine: withFolder(next.engine, next.folder) };
  };
  const openCommon = async (podman: Podman): Promise<OpenedPodman> => {
    let opened = kept.get(podman);
    if (opened === undefined) {
      const { engine, ...others } = await openEngine(podman, { sharedPid: true });
      const logDirectory = join(others.folder, 'logs');
      const metadata = { name: 'common', namespace: 'suite', uid: 'common', attempt: 0 };
      const id = await engine.runtime.runPodSandbox({ metadata, logDirectory });
      opened = { ...others, engine: withFolder(engine, others.folder), common: { id, logDirectory } };
      kept.set(podman, opened);
    }
    const { engine, common, dispose: end } = opened;
    const dispose = async () => {
      try {
        await removeAll(engine, common.id);
      } catch (error) {
        kept.delete(podman);
        await end();
        throw error;
      } finally {
        idle.push(podman);
      }
    };
    return { ...opened, dispose };
  };
  return {
    name: 'engine',
    capabilities,
    concurrency: pool.length,
    loadPods: 9,
    ...extra,
    open: () => open(take()),
    openCommon: () => openCommon(take()),
    reopen: async (opened) => {
      await opened.engine.runtime[Symbol.asyncDispose]();
      return open(opened.podman, opened);
    },
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
    [Symbol.asyncDispose]: async () => {
      await Promise.all([...kept.values()].map((opened) => opened.dispose()));
    },
  };
}
