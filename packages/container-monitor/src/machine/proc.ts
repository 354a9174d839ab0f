import { readdirSync, readFileSync } from 'node:fs';

/** Names a process for good: a process id is used again, but never with the same start time. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Ticks since boot. */
  readonly startTicks: number;
}

export interface ProcessStat extends ProcessIdentity {
  readonly parent: number;
  readonly session: number;
  /** `Z` and `X` are dead. */
  readonly state: string;
  /** Of the process and the children it has waited for, ticks of 1/100 s. */
  readonly cpuTicks: number;
  readonly minorFaults: number;
  readonly majorFaults: number;
}

/** The line of /proc/PID/stat, whose second field may hold any characters. */
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

/** Undefined when it ended, or hides from us. */
export function readStat(pid: number): ProcessStat | undefined {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return undefined;
  }
}

/** Whether this very process still runs. */
export function isAlive(identity: ProcessIdentity): boolean {
  const now = readStat(identity.pid);
  return now !== undefined && now.startTicks === identity.startTicks && now.state !== 'Z' && now.state !== 'X';
}

/** All processes that can be seen and are not dead. */
export function listProcesses(): ProcessStat[] {
  const found: ProcessStat[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const process = readStat(Number(name));
    if (process !== undefined && process.state !== 'Z' && process.state !== 'X') found.push(process);
  }
  return found;
}

/** Arguments of a process; empty when it is not there any more. */
export function readCommandLine(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
  } catch {
    return [];
  }
}

/** Resident memory in bytes, as the kernel counts it for the process alone. */
export function residentBytes(pid: number): number {
  try {
    const line = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'));
    return line?.[1] === undefined ? 0 : Number(line[1]) * 1024;
  } catch {
    return 0;
  }
}

/** Sends a signal; a process (or group, with a negative number) that is gone is no error. */
export function signalProcess(pid: number, signal: NodeJS.Signals | number): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && (error.code === 'ESRCH' || error.code === 'EPERM'))) throw error;
  }
}
