import { readFile } from 'node:fs/promises';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import type { UsageStats } from '../../base/contracts/pod-queries.ts';
import type { DiskUsage, HostFiles } from '../host/host-files.ts';

/** Usage of a file system and its device. */
export interface NodeDisk extends DiskUsage {
  readonly device: string;
}

/** Usage of the machine. */
export interface NodeUsage {
  /** Working set of the machine: memory that cannot be reclaimed without harm, bytes. */
  workingSetBytes(): Promise<number>;
  /** The file system of a path. */
  disk(path: string): Promise<NodeDisk>;
}

/** Usage of this machine; disks are read through `files`. */
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

/** Files with the memory usage of the machine. */
export interface MemoryFiles {
  /** Mount point of cgroup v2, or of the hierarchies of v1. */
  readonly cgroups: string;
  readonly meminfo: string;
}

export const memoryFiles: MemoryFiles = { cgroups: '/sys/fs/cgroup', meminfo: '/proc/meminfo' };

/**
 * The working set of the machine in bytes: see docs/reference/agent-rules.md#eviction. The root cgroup of cgroup v2
 * reports no usage; there it is the memory that is not free minus inactive files.
 *
 * @throws the system error when the machine does not report it
 */
export async function workingSetBytes({ cgroups, meminfo }: MemoryFiles): Promise<number> {
  const v1 = join(cgroups, 'memory');
  const usageV1 = await optional(join(v1, 'memory.usage_in_bytes'));
  if (usageV1 !== undefined) {
    const stat = await readFile(join(v1, 'memory.stat'), 'utf8');
    return above(Number(usageV1), fieldOf(stat, 'total_inactive_file') ?? 0);
  }
  const [current, stat] = await Promise.all([
    optional(join(cgroups, 'memory.current')),
    optional(join(cgroups, 'memory.stat')),
  ]);
  const inactive = stat === undefined ? undefined : fieldOf(stat, 'inactive_file');
  if (current !== undefined && inactive !== undefined) return above(Number(current), inactive);
  const info = await readFile(meminfo, 'utf8');
  const kilobytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(info)?.[1] ?? 0);
  const used = (kilobytes('MemTotal') - kilobytes('MemFree')) * 1024;
  return above(used, inactive ?? kilobytes('Inactive\\(file\\)') * 1024);
}

function above(usage: number, inactive: number): number {
  return Math.max(0, usage - inactive);
}

function fieldOf(stat: string, name: string): number | undefined {
  const text = new RegExp(`^${name} (\\d+)$`, 'm').exec(stat)?.[1];
  return text === undefined ? undefined : Number(text);
}

async function optional(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
}

const nanosPerMs = 1_000_000;

/** CPU time since the start of the machine, and memory that is not available. */
export async function nodeUsage(nowMs: number): Promise<UsageStats> {
  const busyMs = cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0);
  const meminfo = await readFile('/proc/meminfo', 'utf8').catch(() => '');
  const available = Number(/^MemAvailable:\s+(\d+) kB/m.exec(meminfo)?.[1] ?? 0) * 1024;
  return { timeMs: nowMs, cpuNanoSeconds: busyMs * nanosPerMs, memoryWorkingSetBytes: totalmem() - available };
}
