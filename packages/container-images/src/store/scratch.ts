import { randomBytes } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** Names of what is being made or thrown away: nothing else of the folder may be cleared. */
export function isScratchName(name: string): boolean {
  return /^\.scratch-[0-9a-f]{24}$/.test(name);
}

export function scratchPath(folder: string): string {
  return join(folder, `.scratch-${randomBytes(12).toString('hex')}`);
}

/** Runs a task with an empty folder of its own, which is gone afterwards. */
export async function withScratch<T>(folder: string, task: (scratch: string) => Promise<T>): Promise<T> {
  const scratch = scratchPath(folder);
  await mkdir(scratch, { mode: 0o700 });
  try {
    return await task(scratch);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}
