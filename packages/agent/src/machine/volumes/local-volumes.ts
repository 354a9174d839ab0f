import { dirname, isAbsolute, normalize } from 'node:path';
import { quantityValue } from '@keelson/core';
import type { coreV1 } from '@keelson/kinds';
import type { FileType, HostFiles } from '../host/host-files.ts';
import { localFiles } from '../host/local-files.ts';
import type { Mounter } from './mounter.ts';
import { VolumeProblem } from './volume-problem.ts';

/**
 * Creates the directory of an emptyDir, on disk or in memory; always on disk where mounting is disabled. An existing
 * directory is not changed.
 *
 * @throws VolumeProblem
 */
export async function provideEmptyDir(
  directory: string,
  { medium, sizeLimit }: coreV1.EmptyDirVolumeSource,
  group: number | undefined,
  files: HostFiles,
  mounter: Mounter,
): Promise<void> {
  if (medium && medium !== 'Memory') throw new VolumeProblem(`medium ${medium} is not supported by this agent`);
  const made = await files.makeDirectory(directory, 0o755);
  let fresh = made;
  if (medium === 'Memory' && !mounter.disabled && !(await mounter.isMounted(directory))) {
    const limit = sizeLimit === undefined ? [] : [`size=${quantityValue(sizeLimit)}`];
    await mounter.mount({ type: 'tmpfs', source: 'tmpfs', target: directory, options: ['mode=0777', ...limit] });
    fresh = true;
  }
  if (!fresh) return;
  if (group !== undefined) await files.changeGroup(directory, group);
  await files.changeMode(directory, group === undefined ? 0o777 : 0o2777);
}

const wantedTypes: Readonly<Record<string, FileType>> = {
  Directory: 'directory',
  DirectoryOrCreate: 'directory',
  File: 'file',
  FileOrCreate: 'file',
  Socket: 'socket',
  CharDevice: 'charDevice',
  BlockDevice: 'blockDevice',
};

/** Checks the path of a hostPath volume, and creates it for the `...OrCreate` types. @throws VolumeProblem */
export async function prepareHostPath(path: string, type: string, files: HostFiles = localFiles): Promise<string> {
  if (!isAbsolute(path) || path.split('/').includes('..'))
    throw new VolumeProblem(`hostPath "${path}" must be absolute, without ".."`);
  const target = normalize(path);
  if (type === '') return target;
  if (type === 'DirectoryOrCreate') await files.makeDirectory(target, 0o755).catch(refuse(path));
  if (type === 'FileOrCreate') {
    // The parent directory must exist.
    if ((await files.info(dirname(target), 'follow')) === undefined)
      throw new VolumeProblem(`hostPath ${path}: ${dirname(target)} does not exist`);
    if ((await files.info(target, 'follow')) === undefined) await files.makeFile(target, 0o644).catch(refuse(path));
  }
  const found = await files.info(target, 'follow');
  if (found === undefined) throw new VolumeProblem(`hostPath type check failed: ${path} does not exist`);
  if (found.type !== wantedTypes[type]) throw new VolumeProblem(`hostPath type check failed: ${path} is not a ${type}`);
  return target;
}

function refuse(path: string): (error: unknown) => never {
  return (error) => {
    throw new VolumeProblem(`hostPath ${path}: ${error instanceof Error ? error.message : String(error)}`);
  };
}
