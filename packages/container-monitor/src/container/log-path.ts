import { join, normalize } from 'node:path';
import { RuntimeError } from '@keelson/container-runtime';

/**
 * Absolute path of a container's log; undefined when it has none.
 * @throws `InvalidArgument` when it leads out of the directory.
 */
export function logPathOf(directory: string | undefined, path: string | undefined): string | undefined {
  if (directory === undefined || path === undefined || path === '') return undefined;
  const full = normalize(join(directory, path));
  if (!full.startsWith(`${normalize(directory).replace(/\/$/, '')}/`)) {
    throw new RuntimeError('InvalidArgument', `log path leads out of the log directory: "${path}"`);
  }
  return full;
}
