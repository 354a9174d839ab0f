import { readFile } from 'node:fs/promises';
import { cpus, totalmem } from 'node:os';
import type { UsageStats } from '../../base/contracts/pod-queries.ts';

const nanosPerMs = 1_000_000;

/** CPU time that the machine was busy since its start, and memory that is not available. */
export async function nodeUsage(nowMs: number): Promise<UsageStats> {
  const busyMs = cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0);
  const meminfo = await readFile('/proc/meminfo', 'utf8').catch(() => '');
  const available = Number(/^MemAvailable:\s+(\d+) kB/m.exec(meminfo)?.[1] ?? 0) * 1024;
  return { timeMs: nowMs, cpuNanoSeconds: busyMs * nanosPerMs, memoryWorkingSetBytes: totalmem() - available };
}
