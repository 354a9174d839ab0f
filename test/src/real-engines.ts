import { existsSync, readdirSync, rmdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { ContainerEngine } from '@keelson/container-runtime';
import { createOciRuntime } from '@keelson/runtime-oci';
import { createProcessRuntime } from '@keelson/runtime-process';

export interface OpenedEngine {
  readonly engine: ContainerEngine;
  /** Called when all pods are removed. */
  close(): Promise<void>;
}

const cgroupRoot = '/sys/fs/cgroup';

/** Cgroups of the binary above those of pods. Fails when a cgroup of a pod remains. */
function removeCgroups(parent: string): void {
  for (const hierarchy of ['', ...readdirSync(cgroupRoot)]) {
    const folder = join(cgroupRoot, hierarchy, parent);
    if (existsSync(folder)) rmdirSync(folder);
  }
}

/**
 * Containers of an OCI binary, with images from a folder, and cgroups below one that is named after the folder of the
 * test.
 */
export async function openOciEngine(folder: string, sources: string): Promise<OpenedEngine> {
  const parent = `/${basename(folder)}`;
  const engine = await createOciRuntime({
    stateDirectory: join(folder, 'runtime'),
    imageSources: [sources],
    nodeIp: '192.0.2.1',
    cgroups: { parent },
  });
  return {
    engine,
    async close() {
      await engine.runtime[Symbol.asyncDispose]();
      removeCgroups(parent);
    },
  };
}

/** Processes with a root of their own, with images from a folder. */
export async function openProcessEngine(folder: string, sources: string): Promise<OpenedEngine> {
  const engine = await createProcessRuntime({
    stateDirectory: join(folder, 'runtime'),
    imageSources: [sources],
    nodeIp: '192.0.2.1',
  });
  return { engine, close: async () => engine.runtime[Symbol.asyncDispose]() };
}
