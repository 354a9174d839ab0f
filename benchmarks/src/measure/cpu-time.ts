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

/**
 * Resident memory of a process in bytes, without the pages of mapped files, which the system takes back at will
 * (Linux).
 */
export function residentBytes(pid: number): number {
  const match = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(match?.[1] ?? 0) * 1024;
}
