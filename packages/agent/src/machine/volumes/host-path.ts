import { dirname, isAbsolute, normalize } from 'node:path';
import type { FileType, HostFiles } from '../host/host-files.ts';
import { localFiles } from '../host/local-files.ts';
import { VolumeProblem } from './volume-problem.ts';

const wantedTypes: Readonly<Record<string, FileType>> = {
  Directory: 'directory',
  DirectoryOrCreate: 'directory',
  File: 'file',
  FileOrCreate: 'file',
  Socket: 'socket',
  CharDevice: 'charDevice',
  BlockDevice: 'blockDevice',
};

/** Checks, and for the `...OrCreate` types makes, what a hostPath volume names. @throws VolumeProblem */
export async function prepareHostPath(path: string, type: string, files: HostFiles = localFiles): Promise<string> {
  if (!isAbsolute(path) || path.split('/').includes('..'))
    throw new VolumeProblem(`hostPath "${path}" must be absolute, without ".."`);
  const target = normalize(path);
  if (type === '') return target;
  if (type === 'DirectoryOrCreate') await files.makeDirectory(target, 0o755).catch(refuse(path));
  if (type === 'FileOrCreate') {
    // The directory has to be there: what a file is for is known to whoever makes its place.
    if ((await files.info(dirname(target), 'follow')) === undefined)
      throw new VolumeProblem(`hostPath ${path}: ${dirname(target)} is not there`);
    if ((await files.info(target, 'follow')) === undefined) await files.makeFile(target, 0o644).catch(refuse(path));
  }
  const found = await files.info(target, 'follow');
  if (found === undefined) throw new VolumeProblem(`hostPath type check failed: ${path} is not there`);
  if (found.type !== wantedTypes[type]) throw new VolumeProblem(`hostPath type check failed: ${path} is not a ${type}`);
  return target;
}

function refuse(path: string): (error: unknown) => never {
  return (error) => {
    throw new VolumeProblem(`hostPath ${path}: ${error instanceof Error ? error.message : String(error)}`);
  };
}
