import { statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';

const memory = '/dev/shm';
const neededBytes = 2 ** 31;

/**
 * Parent of folders for data that no test needs after a power failure: in memory, where nothing waits for a disk, if
 * the machine has 2 GiB there, else the folder of temporary files.
 */
export function memoryFolder(): string {
  try {
    const { bavail, bsize } = statfsSync(memory);
    return bavail * bsize >= neededBytes ? memory : tmpdir();
  } catch {
    return tmpdir();
  }
}
