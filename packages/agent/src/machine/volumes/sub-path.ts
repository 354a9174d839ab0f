import { isAbsolute, join, relative } from 'node:path';
import type { Mount } from '@keelson/container-runtime';
import type { AgentPaths } from '../../base/agent-paths.ts';
import type { HostAccess } from '../host/host-access.ts';
import type { HostFiles } from '../host/host-files.ts';
import type { Mounter } from './mounter.ts';
import { VolumeProblem } from './volume-problem.ts';

export interface SubPathsOptions {
  readonly paths: AgentPaths;
  readonly host: HostAccess;
  readonly mounter: Mounter;
}

/** Identifies a mount of a container. */
export interface SubPathUse {
  readonly uid: string;
  readonly volume: string;
  readonly container: string;
  /** Position in the list of mounts. */
  readonly index: number;
}

/**
 * Sub paths of volumes. A container that writes to a volume can replace a directory by a symbolic link at any time, so
 * a checked path must not be mounted by name later (CVE-2021-25741): the checked file is opened and bind-mounted in a
 * directory of the agent. The mount is removed with the volumes of the pod.
 */
export class SubPaths {
  readonly #options: SubPathsOptions;

  constructor(options: SubPathsOptions) {
    this.#options = options;
  }

  /** The mount for a sub path of the volume at `root`. @throws VolumeProblem */
  async provide(root: string, subPath: string, use: SubPathUse): Promise<Pick<Mount, 'hostPath' | 'exact'>> {
    const { host, mounter } = this.#options;
    const source = await resolveSubPath(root, subPath, host.files);
    const type = (await host.files.info(source, 'show'))?.type;
    if (mounter.disabled) {
      if (type !== 'directory' && type !== 'file')
        throw new VolumeProblem(`subPath "${subPath}" is neither a directory nor a file, and this node cannot mount`);
      return { hostPath: source, exact: true };
    }
    try {
      return { hostPath: await this.#bind(source, type === 'directory', use) };
    } catch (error) {
      throw new VolumeProblem(`subPath "${subPath}": ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  async #bind(source: string, isDirectory: boolean, { uid, volume, container, index }: SubPathUse): Promise<string> {
    const { paths, host, mounter } = this.#options;
    const above = paths.subPaths(uid, volume, container);
    const target = join(above, isDirectory ? `${index}` : `${index}.file`);
    // An earlier container may have left a mount here.
    await mounter.unmountBelow(target);
    await host.files.makeDirectory(isDirectory ? target : above, 0o750);
    if (!isDirectory) await host.files.makeFile(target, 0o640);
    await mounter.bind(source, target);
    return target;
  }
}

/**
 * Resolves a sub path to a path without symbolic links at the time of the call. Missing directories are created; links
 * are followed only within the volume. @throws VolumeProblem
 */
export async function resolveSubPath(root: string, subPath: string, files: HostFiles): Promise<string> {
  if (isAbsolute(subPath) || subPath.split('/').includes('..')) {
    throw new VolumeProblem(`subPath "${subPath}" must be relative, without ".."`);
  }
  const base = await files.realPath(root);
  let place = base;
  for (const part of subPath.split('/')) {
    if (part === '' || part === '.') continue;
    const next = join(place, part);
    if ((await files.info(next, 'show')) === undefined) {
      await makeLike(place, part, files).catch((error: Error) => {
        throw new VolumeProblem(`subPath "${subPath}": ${error.message}`);
      });
    }
    place = await files.realPath(next).catch(() => {
      throw new VolumeProblem(`subPath "${subPath}" does not exist`);
    });
    const way = relative(base, place);
    if (way === '..' || way.startsWith('../') || isAbsolute(way))
      throw new VolumeProblem(`subPath "${subPath}" is outside of the volume`);
  }
  return place;
}

/** Creates a directory with the mode of its parent, and with the group of the parent where new files inherit it. */
async function makeLike(above: string, name: string, files: HostFiles): Promise<void> {
  const { mode = 0o750 } = (await files.info(above, 'show')) ?? {};
  await files.makeWithin(above, name, mode);
}
