import type { NodeDisk, NodeUsage } from '../../src/machine/stats/node-usage.ts';
import { machine } from './bench.ts';

const gibibyte = 2 ** 30;

/**
 * A machine of 8 GiB; a test determines the usage of its memory and disks. Images are on the disk of everything else,
 * unless they have their own.
 */
export class TestNode implements NodeUsage {
  /** What is available; capacity less this is the working set. */
  memoryBytes = 4 * gibibyte;
  disk1: Omit<NodeDisk, 'device'> = { capacityBytes: 1e11, availableBytes: 9e10, inodes: 1e6, inodesFree: 9e5 };
  imageInodesFree = 9e5;
  ownImagefs = false;
  looksAtMemory = 0;

  async workingSetBytes(): Promise<number> {
    this.looksAtMemory += 1;
    return machine.memoryBytes - this.memoryBytes;
  }

  async disk(path: string): Promise<NodeDisk> {
    // Where the fake runtime reports its images.
    if (path === '/fake')
      return { ...this.disk1, inodesFree: this.imageInodesFree, device: this.ownImagefs ? '2' : '1' };
    return { ...this.disk1, device: '1' };
  }
}
