import { mkdir, open, stat } from 'node:fs/promises';
import { dirname, isAbsolute, normalize } from 'node:path';
import { VolumeProblem } from './volume-problem.ts';

/** Checks, and for the `...OrCreate` types makes, what a hostPath volume names. @throws VolumeProblem */
export async function prepareHostPath(path: string, type: string): Promise<string> {
  if (!isAbsolute(path) || path.split('/').includes('..'))
    throw new VolumeProblem(`hostPath "${path}" must be absolute, without ".."`);
  const target = normalize(path);
  if (type === '') return target;
  if (type === 'DirectoryOrCreate') await mkdir(target, { recursive: true, mode: 0o755 }).catch(refuse(path));
  if (type === 'FileOrCreate') {
    // The directory has to be there: what a file is for is known to whoever makes its place.
    await stat(dirname(target)).catch(refuse(path));
    await open(target, 'a', 0o644).then((file) => file.close(), refuse(path));
  }
  const found = await stat(target).catch(refuse(path));
  const fits: Readonly<Record<string, boolean>> = {
    Directory: found.isDirectory(),
    DirectoryOrCreate: found.isDirectory(),
    File: found.isFile(),
    FileOrCreate: found.isFile(),
    Socket: found.isSocket(),
    CharDevice: found.isCharacterDevice(),
    BlockDevice: found.isBlockDevice(),
  };
  if (fits[type] !== true) throw new VolumeProblem(`hostPath type check failed: ${path} is not a ${type}`);
  return target;
}

function refuse(path: string): (error: unknown) => never {
  return (error) => {
    throw new VolumeProblem(`hostPath ${path}: ${error instanceof Error ? error.message : String(error)}`);
  };
}
