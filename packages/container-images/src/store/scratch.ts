import { randomBytes } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** True for the name of a temporary folder of this store. */
export function isScratchName(name: string): boolean {
  return /^\.scratch-[0-9a-f]{24}$/.test(name);
}

export function scratchPath(folder: string): string {
  return join(folder, `.scratch-${randomBytes(12).toString('hex')}`);
}

/** Runs a task with an empty temporary folder, which is removed afterwards. */
export async function withScratch<T>(folder: string, task: (scratch: string) => Promise<T>): Promise<T> {
  const scratch = scratchPath(folder);
  await mkdir(scratch, { mode: 0o700 });
  try {
    return await task(scratch);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}
