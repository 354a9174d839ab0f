import { closeSync, constants, openSync, readSync } from 'node:fs';

const recordBytes = 8192;

/**
 * Whether the kernel log reports an out-of-memory kill of a process of this container. Engines can miss the kill:
 * Podman does on cgroups of version 1 when the container ends with the process, and containerd when the container has
 * ended before its event is handled. The log entry contains the cgroup, whose name contains the id of the container.
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

/** Reads one record and returns its length; 0 after the last record. */
function readRecord(file: number, buffer: Buffer): number {
  for (;;) {
    try {
      return readSync(file, buffer, 0, recordBytes, null);
    } catch (error) {
      // EPIPE: the record was overwritten before it was read; the next read returns the next record.
      if ((error as { code?: unknown }).code !== 'EPIPE') return 0;
    }
  }
}
