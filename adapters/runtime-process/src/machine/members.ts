import { readFileSync } from 'node:fs';
import { listProcesses, type ProcessIdentity, type ProcessStat } from '@keelson/container-host';

/**
 * Environment variable of all processes of a container, by which daemons that left its session are discovered.
 */
export const containerMarker = 'KEELSON_CONTAINER_ID';

/**
 * The processes of a container: those in the session that its first process leads or led, and those with its marker in
 * their environment. A process of the session that is older than the container belongs to another session with the same
 * ID.
 */
export function processesOf(containerId: string, leader: ProcessIdentity | undefined): ProcessStat[] {
  const mark = `${containerMarker}=${containerId}\0`;
  return listProcesses().filter((process) => {
    if (leader !== undefined && process.session === leader.pid && process.startTicks >= leader.startTicks) return true;
    return readEnvironment(process.pid).includes(mark);
  });
}

function readEnvironment(pid: number): string {
  try {
    return `${readFileSync(`/proc/${pid}/environ`, 'latin1')}\0`;
  } catch {
    return '';
  }
}
