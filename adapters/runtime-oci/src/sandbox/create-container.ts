import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { copyRoot, type ImageStore } from '@keelson/container-images';
import { logPathOf, prepareContainer, signalNumber, stagingFolder } from '@keelson/container-monitor';
import { type ContainerConfig, RuntimeError } from '@keelson/container-runtime';
import { makeSpec } from '../bundle/make-spec.ts';
import { OciContainer } from '../container/oci-container.ts';
import type { OciContext } from '../container/oci-context.ts';
import type { OciRecord } from '../launch/launch-command.ts';
import type { OciSandbox } from './oci-sandbox.ts';

export interface CreateParts {
  readonly around: OciContext;
  readonly images: ImageStore;
  readonly overlay: boolean;
  readonly seccomp: boolean;
}

/**
 * Creates the bundle, the record and the pipes of a container. @throws RuntimeError as specified for `createContainer`
 */
export async function createContainer(
  { around, images, overlay, seccomp }: CreateParts,
  sandbox: OciSandbox,
  config: ContainerConfig,
  id: string,
): Promise<OciContainer> {
  const image = images.find(config.image);
  if (image === undefined) throw new RuntimeError('ImageNotFound', `no image "${config.image}"`);
  const { tty = false, securityContext: context = {} } = config;
  if (tty && !around.machine.terminals)
    throw new RuntimeError('Unsupported', 'a terminal needs the programs script, stty and tty');
  const { config: sandboxConfig } = sandbox.record;
  const logPath = logPathOf(sandboxConfig.logDirectory, config.logPath);
  const imageRoot = images.rootOf(image);
  const cgroup = join(sandbox.cgroup, id);
  const spec = await makeSpec({
    ...{ config, sandbox: sandboxConfig, image: image.config, imageRoot, machine: around.machine },
    ...{ hostname: sandbox.hostname, pod: sandbox.place, cgroupsPath: cgroup, seccomp },
  });
  const record: OciRecord = {
    ...{ id, sandboxId: sandbox.id, createdAt: around.clock.now(), config, imageId: image.id, cgroup },
    ...(logPath !== undefined && { logPath }),
    ...(overlay && { lower: imageRoot }),
    stopSignal: signalNumber(config.stopSignal || image.config.stopSignal || 'SIGTERM'),
    ownPids: (context.namespaces?.pid ?? sandbox.place.namespaces.pid) === 'container',
    // The cgroup is read after the end of the container to detect that it ran out of memory.
    runFlags: around.binary.version.name === 'runc' ? ['--keep'] : [],
  };
  const folder = await stagingFolder(around, id);
  await makeRoot(folder, imageRoot, overlay);
  await writeFile(join(folder, 'config.json'), JSON.stringify(spec), { mode: 0o600 });
  await prepareContainer(around, record, folder);
  return new OciContainer(around, record);
}

async function makeRoot(folder: string, imageRoot: string, overlay: boolean): Promise<void> {
  if (overlay) for (const name of ['rootfs', 'upper', 'work']) await mkdir(join(folder, name), { mode: 0o755 });
  else await copyRoot(imageRoot, join(folder, 'rootfs'));
}
