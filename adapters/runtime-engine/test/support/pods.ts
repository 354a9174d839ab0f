import type {
  ContainerConfig,
  ContainerId,
  ContainerStatus,
  PodSandboxConfig,
  SandboxId,
} from '@keelson/container-runtime';
import type { OpenedPodman } from './engine-harness.ts';

let names = 0;

export function sandbox({ engine }: OpenedPodman, config: Partial<PodSandboxConfig> = {}): Promise<SandboxId> {
  names += 1;
  return engine.runtime.runPodSandbox({
    metadata: { name: `pod-${names}`, namespace: 'test', uid: 'uid', attempt: 0 },
    ...config,
  });
}

/** A started container that runs a script. */
export async function started(
  { engine, podman }: OpenedPodman,
  sandboxId: SandboxId,
  script: string,
  config: Partial<ContainerConfig> = {},
): Promise<ContainerId> {
  names += 1;
  const id = await engine.runtime.createContainer(sandboxId, {
    ...{ metadata: { name: `container-${names}`, attempt: 0 }, image: podman.busyboxImage },
    ...{ command: ['/bin/sh', '-c', script], ...config },
  });
  await engine.runtime.startContainer(id);
  return id;
}

export async function exec({ engine }: OpenedPodman, id: ContainerId, script: string): Promise<string> {
  const { stdout, stderr } = await engine.runtime.execSync(id, { command: ['/bin/sh', '-c', script] });
  return Buffer.from(stdout).toString() + Buffer.from(stderr).toString();
}

export function exited({ engine }: OpenedPodman, id: ContainerId): Promise<ContainerStatus> {
  return until(async () => {
    const status = await engine.runtime.containerStatus(id);
    return status.state === 'exited' ? status : undefined;
  });
}

/** Polls for half a minute and returns the first result other than undefined and false. */
export async function until<T>(probe: () => Promise<T | undefined | false>): Promise<T> {
  const deadline = performance.now() + 30_000;
  for (;;) {
    const found = await probe();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > deadline) throw new Error('the condition was not met within 30 s');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
