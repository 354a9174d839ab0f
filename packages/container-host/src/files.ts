import { mkdir, open, readdir, readFile, rename, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';

let counter = 0;

/** Replaces a file atomically: readers observe the old content or the new one. Several processes may write it. */
export async function writeAtomically(path: string, contents: string | Uint8Array, mode = 0o600): Promise<void> {
  counter += 1;
  await replace(path, `${path}.${process.pid}-${counter}.tmp`, contents, { mode, durable: false });
}

/**
 * Removes what processes that ended during {@link writeAtomically} have left in a folder. No process may be writing to
 * it.
 */
export async function removeUnfinished(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (/\.\d+-\d+\.tmp$/.test(name)) await removeIfPresent(join(folder, name));
  }
}

/**
 * Replaces a file of one writer atomically by one that only its owner can read, and creates its folder. The content is
 * durable when this resolves.
 */
export async function replaceFile(path: string, contents: string | Uint8Array): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o750 });
  await replace(path, `${path}.new`, contents, { mode: 0o600, durable: true });
  await syncFolder(dirname(path));
}

async function replace(
  path: string,
  temporary: string,
  contents: string | Uint8Array,
  { mode, durable }: { readonly mode: number; readonly durable: boolean },
): Promise<void> {
  const file = await open(temporary, 'w', mode);
  try {
    await file.writeFile(contents);
    if (durable) await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
}

/** Makes the entries of a folder durable. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** The content of a file; undefined when it does not exist. */
export async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** Removes a file; a missing file is not an error. */
export async function removeIfPresent(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
  }
}

/** True for a system error with one of these codes. */
export function hasCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}
