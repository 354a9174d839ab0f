import { closeSync, constants, openSync, readSync } from 'node:fs';

const recordBytes = 8192;

/**
 * Whether the kernel has killed a process of this container for want of memory, as far back as its log goes. Podman
 * misses it on cgroups of version 1 when the container goes down with the process; the kernel names the cgroup, and
 * engines name cgroups after containers.
 */
export function killedForMemory(containerId: string, path = '/dev/kmsg'): boolean {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return false;
  }
  const buffer = Buffer.allocUnsafe(recordBytes);
  try {
    for (;;) {
      const length = readRecord(file, buffer);
      if (length === 0) return false;
      const record = buffer.toString('latin1', 0, length);
      if (record.includes('oom-kill:') && record.includes(containerId)) return true;
    }
  } finally {
    closeSync(file);
  }
}

/** Every read gives one record; 0 after the last. */
function readRecord(file: number, buffer: Buffer): number {
  for (;;) {
    try {
      return readSync(file, buffer, 0, recordBytes, null);
    } catch (error) {
      // The record was overwritten before it was read: the next one is there.
      if ((error as { code?: unknown }).code !== 'EPIPE') return 0;
    }
  }
}
