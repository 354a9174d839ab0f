import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { tryTool } from '@keelson/container-host';

/** Whether overlays can be mounted with layers on the file system of this directory. */
export async function overlayWorks(folder: string): Promise<boolean> {
  if (/[:,\\]/.test(folder)) return false; // separators of the mount options
  const probe = join(folder, '.overlay-probe');
  try {
    for (const name of ['lower', 'upper', 'work', 'merged']) await mkdir(join(probe, name), { recursive: true });
    const layers = `lowerdir=${probe}/lower,upperdir=${probe}/upper,workdir=${probe}/work`;
    return (
      (await tryTool('unshare', ['--mount', 'mount', '-t', 'overlay', '-o', layers, 'overlay', `${probe}/merged`])) ===
      undefined
    );
  } finally {
    await rm(probe, { recursive: true, force: true });
  }
}
