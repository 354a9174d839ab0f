import { readFile } from 'node:fs/promises';

/** Identifies a process uniquely, although the kernel reuses process IDs. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Start time in clock ticks since the boot. */
  readonly startTicks: string;
  readonly bootId: string;
}

const bootIdPath = '/proc/sys/kernel/random/boot_id';

/** Undefined when the process does not exist or is a zombie. */
export async function identityOf(pid: number): Promise<ProcessIdentity | undefined> {
  try {
    const [stat, bootId] = await Promise.all([readFile(`/proc/${pid}/stat`, 'utf8'), readFile(bootIdPath, 'utf8')]);
    // The name in parentheses may contain any characters.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state = 'X', startTicks = ''] = [fields[0], fields[19]];
    return state === 'Z' || state === 'X' ? undefined : { pid, startTicks, bootId: bootId.trim() };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return undefined;
    throw error;
  }
}

export async function isAlive({ pid, startTicks, bootId }: ProcessIdentity): Promise<boolean> {
  const now = await identityOf(pid);
  return now !== undefined && now.startTicks === startTicks && now.bootId === bootId;
}
