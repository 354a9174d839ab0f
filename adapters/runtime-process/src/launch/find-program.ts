import { stat } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { resolveInside } from '@keelson/container-monitor';
import { RuntimeError } from '@keelson/container-runtime';

/**
 * Absolute path of a program in the container. A name without a slash is searched in `PATH`; one with a slash is
 * relative to the working directory.
 *
 * @throws RuntimeError `StartFailed` when there is no such program or it is not executable
 */
export async function findProgram(root: string, name: string, searchPath: string, workingDir: string): Promise<string> {
  if (name === '') throw new RuntimeError('StartFailed', 'the command is empty');
  const candidates = name.includes('/')
    ? [posix.resolve(workingDir, name)]
    : searchPath.split(':').map((folder) => posix.resolve(workingDir, folder || '.', name));
  let found = false;
  for (const candidate of candidates) {
    // Links are resolved only below another root, because resolving /proc/self would change its meaning.
    const real = root === '/' ? candidate : join(root, await resolveInside(root, candidate));
    const file = await stat(real).catch(() => undefined);
    if (file === undefined || file.isDirectory()) continue;
    found = true;
    if ((file.mode & 0o111) !== 0) return candidate;
  }
  if (found) throw new RuntimeError('StartFailed', `"${name}" is not executable`);
  throw new RuntimeError('StartFailed', name.includes('/') ? `no such file: "${name}"` : `no "${name}" in PATH`);
}
