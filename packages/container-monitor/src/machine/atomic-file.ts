import { readFile, rename, unlink, writeFile } from 'node:fs/promises';

let counter = 0;

/** Replaces a file atomically: readers observe the old content or the new one. */
export async function writeAtomically(path: string, contents: string | Uint8Array, mode = 0o600): Promise<void> {
  counter += 1;
  const temporary = `${path}.${process.pid}-${counter}.tmp`;
  await writeFile(temporary, contents, { mode });
  await rename(temporary, path);
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
