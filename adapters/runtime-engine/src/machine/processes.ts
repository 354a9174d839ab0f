import { readdirSync, readFileSync } from 'node:fs';
import type { ContainerId } from '@keelson/container-runtime';

/**
 * Processes of the machine that belong to a container. Engines name cgroups after containers; monitors of containers
 * may be near them.
 */
export function processesOf(id: ContainerId): number[] {
  return allProcesses().filter((pid) => belongsTo(pid, id));
}

/** Protects from a process id that was used again. */
export function belongsTo(pid: number, id: ContainerId): boolean {
  return read(pid, 'cgroup')
    .split('\n')
    .some((line) => line.includes(id) && !line.includes('conmon'));
}

/** A process and everything it has started that is still its own. */
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
      // It has ended by itself, or it is not ours to kill.
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
    return ''; // gone meanwhile
  }
}
