import { readFile } from 'node:fs/promises';
import { constants } from 'node:os';

/**
 * Sends a signal to the first process of a container, by its number on this machine. The process must be in the cgroup of the container,
 * which has the container's id in its name with every daemon, so that a number that was given to another process harms nobody.
 *
 * @returns whether it was sent
 */
export async function sendSignal(pid: number, containerId: string, name: string): Promise<boolean> {
  const number = signalNumber(name);
  if (number === undefined) return false;
  try {
    const cgroups = await readFile(`/proc/${pid}/cgroup`, 'utf8');
    return cgroups.includes(containerId) && process.kill(pid, number);
  } catch {
    // It has ended, or this process may not.
    return false;
  }
}

function signalNumber(name: string): number | undefined {
  if (/^\d+$/.test(name)) return Number(name);
  const full = name.startsWith('SIG') ? name : `SIG${name}`;
  return Object.hasOwn(constants.signals, full) ? constants.signals[full as keyof typeof constants.signals] : undefined;
}
