import { readFile } from 'node:fs/promises';
import { isAlive as isRunning, readStat } from '@keelson/container-host';

/** Identifies a process uniquely, although the kernel reuses process IDs, also after a reboot. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Start time in clock ticks since the boot. */
  readonly startTicks: string;
  readonly bootId: string;
}

const bootId = async () => (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();

/** The identity of a running process. Undefined when the process does not exist or is a zombie. */
export async function identityOf(pid: number): Promise<ProcessIdentity | undefined> {
  const stat = readStat(pid);
  if (stat === undefined || !isRunning(stat)) return undefined;
  return { pid, startTicks: String(stat.startTicks), bootId: await bootId() };
}

export async function isAlive({ pid, startTicks, bootId: boot }: ProcessIdentity): Promise<boolean> {
  return isRunning({ pid, startTicks: Number(startTicks) }) && boot === (await bootId());
}
