import { readdirSync, readFileSync } from 'node:fs';

/** Identifies a process uniquely: the kernel reuses process ids, but not together with the start time. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Start time of the process in clock ticks since boot. */
  readonly startTicks: number;
}

export interface ProcessStat extends ProcessIdentity {
  readonly parent: number;
  readonly session: number;
  /** State letter; `Z` and `X` are processes that have ended. */
  readonly state: string;
  /** CPU time of the process and of the children it has waited for, in ticks of 1/100 s. */
  readonly cpuTicks: number;
  readonly minorFaults: number;
  readonly majorFaults: number;
}

/** Parses the line of /proc/PID/stat, whose second field may contain any characters. */
export function parseStat(text: string): ProcessStat | undefined {
  const end = text.lastIndexOf(')');
  const pid = Number.parseInt(text, 10);
  const fields = text.slice(end + 2).split(' ');
  const number = (field: number) => Number(fields[field - 3]);
  const startTicks = number(22);
  if (end < 0 || !Number.isInteger(pid) || !Number.isInteger(startTicks)) return undefined;
  return {
    pid,
    startTicks,
    state: fields[0] ?? '?',
    parent: number(4),
    session: number(6),
    cpuTicks: number(14) + number(15) + number(16) + number(17),
    minorFaults: number(10),
    majorFaults: number(12),
  };
}

/** The state of a process; undefined when it has ended or is not visible to this process. */
export function readStat(pid: number): ProcessStat | undefined {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return undefined;
  }
}

/** Whether the process with this id and start time is running. */
export function isAlive(identity: ProcessIdentity): boolean {
  const now = readStat(identity.pid);
  return now !== undefined && now.startTicks === identity.startTicks && now.state !== 'Z' && now.state !== 'X';
}

/** All visible processes that have not ended. */
export function listProcesses(): ProcessStat[] {
  const found: ProcessStat[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const process = readStat(Number(name));
    if (process !== undefined && process.state !== 'Z' && process.state !== 'X') found.push(process);
  }
  return found;
}

/** Arguments of a process; empty when it has ended. */
export function readCommandLine(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
  } catch {
    return [];
  }
}

/** Resident memory of one process in bytes; 0 when it has ended. */
export function residentBytes(pid: number): number {
  try {
    const line = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'));
    return line?.[1] === undefined ? 0 : Number(line[1]) * 1024;
  } catch {
    return 0;
  }
}

/** Sends a signal to a process, or to a group given as negative number; one that has ended is not an error. */
export function signalProcess(pid: number, signal: NodeJS.Signals | number): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && (error.code === 'ESRCH' || error.code === 'EPERM'))) throw error;
  }
}
