import { readFileSync } from 'node:fs';
import { listProcesses, signalProcess } from '@keelson/container-host';
import type { ContainerId } from '@keelson/container-runtime';

/**
 * Lists the processes of a container on the machine. Engines name cgroups after containers; the cgroup of a container's
 * monitor process has a similar name and is excluded.
 */
export function processesOf(id: ContainerId): number[] {
  return listProcesses()
    .map(({ pid }) => pid)
    .filter((pid) => belongsTo(pid, id));
}

/** Checks the cgroup of a process, because the kernel may have assigned its id to another process. */
export function belongsTo(pid: number, id: ContainerId): boolean {
  return cgroupsOf(pid)
    .split('\n')
    .some((line) => line.includes(id) && !line.includes('conmon'));
}

/** A process and its current descendants. */
export function withDescendants(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const { pid, parent } of listProcesses()) children.set(parent, [...(children.get(parent) ?? []), pid]);
  const all = [root];
  for (const pid of all) all.push(...(children.get(pid) ?? []));
  return all;
}

export function killAll(pids: readonly number[]): void {
  for (const pid of pids) signalProcess(pid, 'SIGKILL');
}

function cgroupsOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cgroup`, 'latin1');
  } catch {
    return ''; // the process has ended meanwhile
  }
}
