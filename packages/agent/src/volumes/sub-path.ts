import { isAbsolute, join, relative } from 'node:path';
import type { HostFiles } from './host/host-files.ts';
import { localFiles } from './host/local-files.ts';
import { VolumeProblem } from './volume-problem.ts';

/**
 * The place within a volume that a mount shows. Missing directories are made; links are followed only as long as they stay within the
 * volume, whoever wrote them. @throws VolumeProblem
 */
export async function resolveSubPath(root: string, subPath: string, files: HostFiles = localFiles): Promise<string> {
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
      throw new VolumeProblem(`subPath "${subPath}" leads to nothing`);
    });
    const way = relative(base, place);
    if (way === '..' || way.startsWith('../') || isAbsolute(way))
      throw new VolumeProblem(`subPath "${subPath}" leads out of the volume`);
  }
  return place;
}

/** Whoever may use the directory above may use the new one: its group comes from there as well, where that is handed on. */
async function makeLike(above: string, name: string, files: HostFiles): Promise<void> {
  const { mode = 0o750 } = (await files.info(above, 'show')) ?? {};
  await files.makeWithin(above, name, mode);
}
