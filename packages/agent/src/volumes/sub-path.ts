import { lstat, mkdir, realpath } from 'node:fs/promises';
import { isAbsolute, join, relative } from 'node:path';
import { VolumeProblem } from './volume-problem.ts';

/**
 * The place within a volume that a mount shows. Missing directories are made; links are followed only as long as they stay within the
 * volume, whoever wrote them. @throws VolumeProblem
 */
export async function resolveSubPath(root: string, subPath: string): Promise<string> {
  if (isAbsolute(subPath) || subPath.split('/').includes('..')) {
    throw new VolumeProblem(`subPath "${subPath}" must be relative, without ".."`);
  }
  const base = await realpath(root);
  let place = base;
  for (const part of subPath.split('/')) {
    if (part === '' || part === '.') continue;
    const next = join(place, part);
    const found = await lstat(next).catch(() => undefined);
    if (found === undefined) {
      await mkdir(next, { mode: 0o750 }).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw new VolumeProblem(`subPath "${subPath}": ${error.message}`);
      });
    }
    place = await realpath(next).catch(() => {
      throw new VolumeProblem(`subPath "${subPath}" leads to nothing`);
    });
    const way = relative(base, place);
    if (way === '..' || way.startsWith('../') || isAbsolute(way))
      throw new VolumeProblem(`subPath "${subPath}" leads out of the volume`);
  }
  return place;
}
