import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { maxManifestBytes } from './parse-manifest.ts';

/** A file with its content, or the error of reading it. */
export interface ManifestFile {
  readonly path: string;
  readonly content: Buffer | Error;
}

/** True for errors which mean that a file does not exist. */
function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOENT' || code === 'ENOTDIR';
}

/** Undefined for anything but a regular file: opening a pipe would wait for its writer. */
async function read(path: string): Promise<ManifestFile | undefined> {
  try {
    const found = await stat(path);
    if (!found.isFile()) return undefined;
    if (found.size > maxManifestBytes) throw new Error(`has more than ${maxManifestBytes} bytes`);
    return { path, content: await readFile(path) };
  } catch (error) {
    return isMissing(error) ? undefined : { path, content: error as Error };
  }
}

/**
 * The file itself, or the files of a directory in the order of their names, without names with a leading dot. Empty
 * when the path does not exist.
 *
 * @throws the error of the system call for a path that exists and cannot be read
 */
export async function listManifests(path: string): Promise<readonly ManifestFile[]> {
  try {
    const found = await stat(path);
    const paths = found.isDirectory()
      ? (await readdir(path))
          .filter((name) => !name.startsWith('.'))
          .sort()
          .map((name) => join(path, name))
      : [path];
    return (await Promise.all(paths.map(read))).filter((file) => file !== undefined);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}
