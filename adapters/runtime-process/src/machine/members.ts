import { readFileSync } from 'node:fs';
import { listProcesses, type ProcessIdentity, type ProcessStat } from '@keelson/container-monitor';

/**
 * Carried by the environment of everything that runs in a container, so that daemons that left its session are found.
 */
export const containerMarker = 'KEELSON_CONTAINER_ID';

/**
 * Processes that belong to a container: those of the session that its first process leads or led, and those that carry
 * its mark. A session is believed only if it began no earlier than the container.
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
