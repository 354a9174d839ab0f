import { readdirSync, readFileSync } from 'node:fs';

/**
 * CPU seconds that the threads of a process have used so far, from the scheduler's own count in nanoseconds (Linux).
 * Threads that have ended are missing; Node keeps its threads.
 */
export function cpuSeconds(pid: number): number {
  let nanoseconds = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    nanoseconds += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
  }
  return nanoseconds / 1e9;
}

/** Processes that a process has started (Linux). */
export function childrenOf(pid: number): number[] {
  const words = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ');
  return words.filter((word) => word !== '').map(Number);
}

/** Linux counts the time of ended processes in hundredths of a second. */
const ticksPerSecond = 100;

/** CPU seconds of a process and its children, those included that have ended (Linux). */
export function familyCpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  const ended = (Number(fields[13]) + Number(fields[14])) / ticksPerSecond;
  return [pid, ...childrenOf(pid)].reduce((sum, process) => sum + cpuOrZero(process), ended);
}

/** The time of a process that has just ended is already that of its parent. */
function cpuOrZero(pid: number): number {
  try {
    return cpuSeconds(pid);
  } catch {
    return 0;
  }
}

/**
 * Resident memory of a process in bytes, without the pages of mapped files, which the system takes back at will
 * (Linux).
 */
export function residentBytes(pid: number): number {
  const match = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(match?.[1] ?? 0) * 1024;
}
