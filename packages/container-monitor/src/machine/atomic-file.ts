import { readFile, rename, unlink, writeFile } from 'node:fs/promises';

let counter = 0;

/** Readers see the old contents or the new, never a part. */
export async function writeAtomically(path: string, contents: string | Uint8Array, mode = 0o600): Promise<void> {
  counter += 1;
  const temporary = `${path}.${process.pid}-${counter}.tmp`;
  await writeFile(temporary, contents, { mode });
  await rename(temporary, path);
}

/** Undefined when there is no such file. */
export async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

export async function removeIfPresent(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
  }
}

/** True for a system error of one of these codes. */
export function hasCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}
