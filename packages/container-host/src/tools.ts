import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { RuntimeError } from '@keelson/container-runtime';

const folders = ['/usr/bin', '/bin', '/usr/sbin', '/sbin', '/usr/local/bin', '/usr/local/sbin'];

/** Search path of the programs that runtimes run; independent of the environment of this process. */
export const toolPath = folders.join(':');

/** Environment variables of the programs that runtimes run. */
export const toolEnvironment = { PATH: toolPath, LC_ALL: 'C' };

const found = new Map<string, string | undefined>();

/** Absolute path of an installed program, or undefined. */
export function findTool(name: string): string | undefined {
  if (!found.has(name)) found.set(name, folders.map((folder) => `${folder}/${name}`).find(isExecutable));
  return found.get(name);
}

/** Absolute path of an installed program. @throws RuntimeError `Unsupported` when it is not installed */
export function tool(name: string): string {
  const path = findTool(name);
  if (path === undefined) throw new RuntimeError('Unsupported', `program "${name}" not found in ${toolPath}`);
  return path;
}

/**
 * Runs an installed program. Returns undefined on success, otherwise the last line of its error output.
 *
 * @throws RuntimeError `Unsupported` when it is not installed
 */
export async function tryTool(
  name: string,
  args: readonly string[],
  signal?: AbortSignal,
): Promise<string | undefined> {
  const options = { env: toolEnvironment, maxBuffer: 1 << 20, ...(signal && { signal }) };
  return new Promise((resolve) => {
    execFile(tool(name), args, options, (error, _stdout, stderr) => {
      resolve(error === null ? undefined : stderr.trim().split('\n').at(-1) || error.message);
    });
  });
}

/** Whether this process can mount overlays with layers on the file system of this folder; tested by mounting one. */
export async function overlayWorks(folder: string): Promise<boolean> {
  if (/[:,\\]/.test(folder)) return false; // separators of the mount options
  const probe = join(folder, '.overlay-probe');
  try {
    for (const name of ['lower', 'upper', 'work', 'merged']) await mkdir(join(probe, name), { recursive: true });
    const layers = `lowerdir=${probe}/lower,upperdir=${probe}/upper,workdir=${probe}/work`;
    const args = ['--mount', 'mount', '-t', 'overlay', '-o', layers, 'overlay', `${probe}/merged`];
    return (await tryTool('unshare', args)) === undefined;
  } finally {
    await rm(probe, { recursive: true, force: true });
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
