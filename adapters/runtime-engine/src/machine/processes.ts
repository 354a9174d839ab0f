import { readdirSync, readFileSync } from 'node:fs';
import type { ContainerId } from '@keelson/container-runtime';

/**
 * Lists the processes of a container on the machine. Engines name cgroups after containers; the cgroup of a container's
 * monitor process has a similar name and is excluded.
 */
export function processesOf(id: ContainerId): number[] {
  return allProcesses().filter((pid) => belongsTo(pid, id));
}

/** Checks the cgroup of a process, because the kernel may have assigned its id to another process. */
export function belongsTo(pid: number, id: ContainerId): boolean {
  return read(pid, 'cgroup')
    .split('\n')
    .some((line) => line.includes(id) && !line.includes('conmon'));
}

/** A process and its current descendants. */
export function withDescendants(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const pid of allProcesses()) {
    const stat = read(pid, 'stat');
    const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
    children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  const all = [root];
  for (const pid of all) all.push(...(children.get(pid) ?? []));
  return all;
}

export function killAll(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // The process has ended, or this process lacks the permission.
    }
  }
}

function allProcesses(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function read(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return ''; // the process has ended meanwhile
  }
}
