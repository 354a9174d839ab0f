import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { RuntimeError } from '@keelson/container-runtime';

const folders = ['/usr/bin', '/bin', '/usr/sbin', '/sbin', '/usr/local/bin', '/usr/local/sbin'];

/** Search path of the programs that runtimes run; independent of the environment of this process. */
export const toolPath = folders.join(':');

/** The environment of these programs. */
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
 * Runs an installed program; undefined on success, otherwise the last line of its error output.
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

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
