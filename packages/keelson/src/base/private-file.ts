import { chmod, open, readFile, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type Logger, makePrivateDirectory, silentLogger, tightenMode } from '@keelson/core/runtime';

const ownerOnly = 0o600;

/**
 * Reads a file that only its owner may access; a wider mode is restricted first. Undefined when the file does not
 * exist.
 */
export async function readPrivateFile(path: string, logger: Logger): Promise<string | undefined> {
  tightenMode(path, logger);
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * Replaces a file atomically and durably, readable by its owner only, and creates its directory. A file with the same
 * content is not written again, so that a start requires no disk space.
 */
export async function writePrivateFile(path: string, content: string, logger: Logger = silentLogger): Promise<void> {
  makePrivateDirectory(dirname(path), logger);
  if ((await readPrivateFile(path, logger)) === content) return;
  const temporary = `${path}.new`;
  const file = await open(temporary, 'w', ownerOnly);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  await chmod(temporary, ownerOnly);
  await rename(temporary, path);
  await syncDirectory(dirname(path));
}

/** Makes the directory entry of a new file durable. */
async function syncDirectory(path: string): Promise<void> {
  if (process.platform === 'win32') return;
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
