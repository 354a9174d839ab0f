import { readdirSync, readFileSync, rmdirSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { OpenedEngine, Program, RuntimeHarness } from '@keelson/conformance';
import type { ContainerConfig, ContainerEngine, RuntimeCapabilities } from '@keelson/container-runtime';
import { processesWith, type Reusable, ReusePool } from '@keelson/test-support';
import { createOciRuntime, type OciRuntimeOptions } from '../../src/index.ts';
import { image, pullableImage } from './busybox-image.ts';

export interface OpenedOci extends OpenedEngine, Reusable {
  readonly folder: string;
  readonly options: OciRuntimeOptions;
}

export const shell = (script: string): Program => ({ image, command: ['/bin/sh', '-c', script] });

/** Whether a process handles or ignores a signal; true also when it has ended. */
function heeds(pid: number | undefined, set: 'SigIgn' | 'SigCgt', signal: number): boolean {
  try {
    const mask = new RegExp(`^${set}:\\s+([0-9a-f]+)$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
    return mask === undefined || (BigInt(`0x${mask}`) & (1n << BigInt(signal - 1))) !== 0n;
  } catch {
    return true;
  }
}

/** Groups below this one, in every hierarchy. */
export function cgroupsBelow(parent: string): string[] {
  return readdirSync('/sys/fs/cgroup').flatMap((hierarchy) => {
    const folder = join('/sys/fs/cgroup', hierarchy, parent);
    try {
      return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
        entry.isDirectory() ? [join(folder, entry.name)] : [],
      );
    } catch {
      return [];
    }
  });
}

function removeCgroup(parent: string): void {
  for (const hierarchy of ['', ...readdirSync('/sys/fs/cgroup')]) {
    try {
      rmdirSync(join('/sys/fs/cgroup', hierarchy, parent));
    } catch {
      // Not a hierarchy, or one without limits.
    }
  }
}

/**
 * Waits until none of the inspections finds anything. A later one is made when the earlier ones found nothing.
 *
 * @throws Error with what remains
 */
async function nothingLeft(...inspections: readonly (() => readonly string[])[]): Promise<void> {
  const deadline = performance.now() + 30_000;
  for (;;) {
    const left = inspections.reduce<readonly string[]>((found, inspect) => (found.length > 0 ? found : inspect()), []);
    if (left.length === 0) return;
    if (performance.now() > deadline) throw new Error(`left on the machine: ${left.join('; ')}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Scripts of the suite write to folders of the machine, so these are mounted at their own paths. */
function withMounts(engine: ContainerEngine, folder: string): ContainerEngine {
  const mount = { hostPath: folder, containerPath: folder };
  const runtime = new Proxy(engine.runtime, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (name === 'createContainer') {
        return (sandboxId: string, config: ContainerConfig, ...rest: [object?]) =>
          target.createContainer(
            sandboxId,
            killsItself({ ...config, mounts: [...(config.mounts ?? []), mount] }),
            ...rest,
          );
      }
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  return { ...engine, runtime };
}

/** The kernel does not let the first process of a PID namespace kill itself. */
function killsItself(config: ContainerConfig): ContainerConfig {
  if (!config.command?.some((word) => /^kill -\w+ \$\$$/.test(word))) return config;
  const securityContext = {
    ...config.securityContext,
    namespaces: { network: 'pod', ipc: 'pod', pid: 'node' } as const,
  };
  return { ...config, securityContext };
}

export async function openOci(options: Partial<OciRuntimeOptions>, folder?: string, pull = true): Promise<OpenedOci> {
  const place = folder ?? (await mkdtemp('/tmp/keelson-oci-'));
  const parent = options.cgroups?.parent ?? `/${basename(place)}`;
  const all = { nodeIp: '192.0.2.1', ...options, stateDirectory: join(place, 'state'), cgroups: { parent } };
  const scratch = join(place, 'scratch');
  await mkdir(scratch, { recursive: true });
  const plain = await createOciRuntime(all);
  if (pull) await plain.images.pullImage(image);
  const engine = withMounts(plain, scratch);
  const { runtime, images } = engine;
  const removeSandboxes = async () => {
    for (const { id } of await runtime.listPodSandboxes()) await runtime.removePodSandbox(id);
  };
  const traces = () => [
    ...['containers', 'run', 'sandboxes', 'pods', 'oci'].flatMap((name) => readdirSync(join(place, 'state', name))),
    ...readFileSync('/proc/self/mounts', 'utf8')
      .split('\n')
      .filter((line) => line.includes(place)),
    ...cgroupsBelow(parent),
  ];
  return {
    engine,
    folder: place,
    options: all,
    empty: async () => {
      await removeSandboxes();
      for (const { repoTags } of await images.listImages())
        for (const name of repoTags) if (name !== image) await images.removeImage(name);
      // The log keeper of an open runtime runs until the runtime is closed.
      await nothingLeft(traces, () => processesWith([place]).filter((line) => !line.includes('log-keeper.js')));
    },
    dispose: async () => {
      await removeSandboxes();
      await runtime[Symbol.asyncDispose]();
      await nothingLeft(traces, () => processesWith([place]));
      removeCgroup(parent);
      await rm(place, { recursive: true, force: true });
    },
  };
}

/**
 * `capabilities` are those of the runtime on this machine. Engines are reused after all pods were removed; disposing
 * of the harness closes them.
 */
export function ociHarness(
  name: string,
  capabilities: RuntimeCapabilities,
  options: Partial<OciRuntimeOptions>,
): RuntimeHarness<OpenedOci> & AsyncDisposable {
  const pool = new ReusePool(() => openOci(options));
  return {
    name,
    capabilities,
    concurrency: 4,
    // 30 pods would be a third of all containers of this suite; the suite of processes starts 30 at once.
    ...(process.env['KEELSON_TEST_FULL'] !== '1' && { loadPods: 9 }),
    missingImage: 'registry.test/missing:1',
    pullableImage,
    ...(capabilities.podNetwork ? {} : { sharesHostNetwork: true as const }),
    open: () => pool.open(),
    reopen: async ({ engine, folder, options: own }) => {
      await engine.runtime[Symbol.asyncDispose]();
      return pool.lend(await openOci(own, folder, false));
    },
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
    program: (intent) => {
      if (intent.kind === 'run') return shell('trap "exit 143" TERM; while :; do sleep 100000 & wait $!; done');
      if (intent.kind === 'stubborn') return shell('trap "" TERM; while :; do sleep 100000; done');
      if (intent.kind === 'cannotStart') return { image, command: ['/no/such/program'] };
      return shell(`sleep ${(intent.afterMs ?? 0) / 1000}; exit ${intent.code}`);
    },
    settled: async ({ engine }, id, intent) => {
      if (intent.kind !== 'stubborn' && intent.kind !== 'run') return;
      const { pid } = await engine.runtime.containerStatus(id);
      while (!heeds(pid, intent.kind === 'run' ? 'SigCgt' : 'SigIgn', 15))
        await new Promise((resolve) => setTimeout(resolve, 5));
    },
    shell,
    printf: (...args) => ({ image, command: ['printf'], args }),
    scratch: ({ folder }) => mkdtemp(join(folder, 'scratch', 's-')),
    otherUser: { uid: 65534, gid: 65534 },
  };
}
