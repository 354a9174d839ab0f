import { access, constants, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { NetworkError } from '../network-error.ts';

/**
 * Path of a plugin's program in the first folder that contains it.
 * @throws NetworkError `Unavailable` when no folder contains it
 */
export async function findPlugin(type: string, folders: readonly string[]): Promise<string> {
  for (const folder of folders) {
    const path = join(folder, type);
    if (await isProgram(path)) return path;
  }
  throw new NetworkError(
    'Unavailable',
    `failed to find plugin ${JSON.stringify(type)} in path [${folders.join(', ')}]`,
  );
}

async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}
