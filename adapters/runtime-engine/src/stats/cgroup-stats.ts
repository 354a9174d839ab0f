import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ContainerStats } from '@keelson/container-runtime';

export type Usage = Pick<ContainerStats, 'cpu' | 'memory' | 'processes'>;

/** Folders of a container's cgroups: by controller for version 1, with an empty key for version 2. */
export type CgroupFolders = ReadonlyMap<string, string>;

const unified = '';

/**
 * Finds the cgroup folders of a process. On a machine with both versions the controllers of version 1 take precedence,
 * because those are in use.
 */
export async function cgroupFolders(pid: number, mountpoint: string): Promise<CgroupFolders> {
  const folders = new Map<string, string>();
  for (const line of (await readFile(`/proc/${pid}/cgroup`, 'utf8')).split('\n')) {
    const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers === undefined || path === undefined) continue;
    if (controllers === unified) folders.set(unified, join(mountpoint, path));
    else
      for (const name of controllers.split(','))
        folders.set(name, join(mountpoint, controllers.replace(/^name=/, ''), path));
  }
  return folders;
}

/** Reads the current usage; values that cannot be read are omitted. */
export async function readUsage(folders: CgroupFolders): Promise<Usage> {
  const [cpu, memory, processes] = await Promise.all([readCpu(folders), readMemory(folders), readProcesses(folders)]);
  return { ...(cpu && { cpu }), ...(memory && { memory }), ...(processes !== undefined && { processes }) };
}

async function readCpu(folders: CgroupFolders): Promise<Usage['cpu']> {
  const old = await number(folders.get('cpuacct'), 'cpuacct.usage');
  if (old !== undefined) return { usageCoreNanoseconds: BigInt(old) };
  const microseconds = (await fields(folders.get(unified), 'cpu.stat')).get('usage_usec');
  return microseconds === undefined ? undefined : { usageCoreNanoseconds: BigInt(microseconds) * 1000n };
}

async function readMemory(folders: CgroupFolders): Promise<Usage['memory']> {
  const old = folders.get('memory');
  const [folder, usageFile, inactive, resident] =
    old === undefined
      ? [folders.get(unified), 'memory.current', 'inactive_file', 'anon']
      : [old, 'memory.usage_in_bytes', 'total_inactive_file', 'total_rss'];
  const prefix = old === undefined ? '' : 'total_';
  const usage = await number(folder, usageFile);
  if (usage === undefined) return undefined;
  const stat = await fields(folder, 'memory.stat');
  const [rss, faults, majorFaults] = [
    stat.get(resident),
    stat.get(`${prefix}pgfault`),
    stat.get(`${prefix}pgmajfault`),
  ];
  return {
    usageBytes: usage,
    workingSetBytes: Math.max(0, usage - Number(stat.get(inactive) ?? 0)),
    ...(rss !== undefined && { rssBytes: Number(rss) }),
    ...(faults !== undefined && { pageFaults: BigInt(faults) }),
    ...(majorFaults !== undefined && { majorPageFaults: BigInt(majorFaults) }),
  };
}

async function readProcesses(folders: CgroupFolders): Promise<number | undefined> {
  return number(folders.get('pids') ?? folders.get(unified), 'pids.current');
}

async function text(folder: string | undefined, file: string): Promise<string | undefined> {
  return folder === undefined ? undefined : readFile(join(folder, file), 'utf8').catch(() => undefined);
}

async function number(folder: string | undefined, file: string): Promise<number | undefined> {
  const value = (await text(folder, file))?.trim();
  return value === undefined || !/^\d+$/.test(value) ? undefined : Number(value);
}

async function fields(folder: string | undefined, file: string): Promise<ReadonlyMap<string, string>> {
  const lines = ((await text(folder, file)) ?? '').split('\n');
  return new Map(lines.flatMap((line) => (/^(\S+) (\d+)$/.test(line) ? [line.split(' ') as [string, string]] : [])));
}
