import { accessSync, constants } from 'node:fs';
import { RuntimeError } from '@keelson/container-runtime';

const folders = ['/usr/bin', '/bin', '/usr/sbin', '/sbin', '/usr/local/bin', '/usr/local/sbin'];

/** Search path of the runtime's own helpers, whatever its caller's environment says. */
export const toolPath = folders.join(':');

const found = new Map<string, string | undefined>();

/** Absolute path of a program of the machine, or undefined. */
export function findTool(name: string): string | undefined {
  if (!found.has(name)) found.set(name, folders.map((folder) => `${folder}/${name}`).find(isExecutable));
  return found.get(name);
}

/** @throws `Unsupported` when the machine does not have it. */
export function tool(name: string): string {
  const path = findTool(name);
  if (path === undefined) throw new RuntimeError('Unsupported', `the machine has no "${name}" in ${toolPath}`);
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
