import type { DiskUsage, HostFiles } from '../host/host-files.ts';
import { type MemoryFiles, memoryFiles, workingSetBytes } from './working-set.ts';

/** A file system, and which of the machine's it is. */
export interface NodeDisk extends DiskUsage {
  readonly device: string;
}

/** What is used of the machine. */
export interface NodeUsage {
  /** Memory of all processes that cannot be given up without harm, bytes. */
  workingSetBytes(): Promise<number>;
  /** The file system that a path is on. */
  disk(path: string): Promise<NodeDisk>;
}

/** The machine that the agent runs on; disks are those of `files`. */
export function machineUsage(
  files: Pick<HostFiles, 'diskUsage' | 'device'>,
  memory: MemoryFiles = memoryFiles,
): NodeUsage {
  return {
    workingSetBytes: () => workingSetBytes(memory),
    async disk(path) {
      const [usage, device] = await Promise.all([files.diskUsage(path), files.device(path)]);
      return { ...usage, device };
    },
  };
}
