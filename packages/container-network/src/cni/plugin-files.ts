import { access, constants, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { NetworkError } from '../network-error.ts';

/**
 * The program of a plugin: the first of its name in the folders.
 * @throws NetworkError `Unavailable` when there is none
 */
export async function findPlugin(type: string, folders: readonly string[]): Promise<string> {
  for (const folder of folders) {
    const path = join(folder, type);
    if (await isProgram(path)) return path;
  }
  throw new NetworkError('Unavailable', `no plugin ${JSON.stringify(type)} in ${folders.join(', ')}`);
}

async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}
