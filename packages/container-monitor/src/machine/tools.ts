import { accessSync, constants } from 'node:fs';
import { RuntimeError } from '@keelson/container-runtime';

const folders = ['/usr/bin', '/bin', '/usr/sbin', '/sbin', '/usr/local/bin', '/usr/local/sbin'];

/** Search path of the programs that the runtime runs; independent of the environment of the caller. */
export const toolPath = folders.join(':');

const found = new Map<string, string | undefined>();

/** Absolute path of an installed program, or undefined. */
export function findTool(name: string): string | undefined {
  if (!found.has(name)) found.set(name, folders.map((folder) => `${folder}/${name}`).find(isExecutable));
  return found.get(name);
}

/** Absolute path of an installed program. @throws `Unsupported` when it is not installed. */
export function tool(name: string): string {
  const path = findTool(name);
  if (path === undefined) throw new RuntimeError('Unsupported', `program "${name}" not found in ${toolPath}`);
  return path;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
