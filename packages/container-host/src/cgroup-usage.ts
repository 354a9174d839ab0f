import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ContainerStats } from '@keelson/container-runtime';
import { type CgroupFiles, systemCgroupFiles } from './cgroup-files.ts';

export type CgroupUsage = Pick<ContainerStats, 'cpu' | 'memory' | 'processes'>;

/**
 * The folders of one cgroup, one for each hierarchy. A value is read from the first folder that has its file. Folders
 * of version 1 come first: where both versions are mounted, the controllers are on version 1.
 */
export type CgroupFolders = readonly string[];

/** The cgroup folders of a process. @throws when the process has ended */
export async function cgroupFoldersOf(pid: number, mountpoint: string): Promise<CgroupFolders> {
  const folders: string[] = [];
  let unified: string | undefined;
  for (const line of (await readFile(`/proc/${pid}/cgroup`, 'utf8')).split('\n')) {
    const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers === undefined || path === undefined) continue;
    if (controllers === '') unified = join(mountpoint, path);
    else folders.push(join(mountpoint, controllers.replace(/^name=/, ''), path));
  }
  return unified === undefined ? folders : [...folders, unified];
}

/** Reads the current usage; values that cannot be read are absent. */
export async function readCgroupUsage(
  folders: CgroupFolders,
  files: Pick<CgroupFiles, 'read'> = systemCgroupFiles,
): Promise<CgroupUsage> {
  const number = async (...names: string[]) => {
    const text = (await firstOf(folders, names, files))?.text.trim() ?? '';
    return /^\d+$/.test(text) ? BigInt(text) : undefined;
  };
  const [nanoseconds, memory, processes] = await Promise.all([
    number('cpuacct.usage').then((own) => own ?? cpuNanoseconds(folders, files)),
    memoryUsage(folders, files),
    number('pids.current'),
  ]);
  return {
    ...(nanoseconds !== undefined && { cpu: { usageCoreNanoseconds: nanoseconds } }),
    ...(memory !== undefined && { memory }),
    ...(processes !== undefined && { processes: Number(processes) }),
  };
}

/** The processes in a cgroup; those of other PID namespaces, which are shown as 0, are omitted. */
export async function cgroupMembers(
  folders: CgroupFolders,
  files: Pick<CgroupFiles, 'read'> = systemCgroupFiles,
): Promise<number[]> {
  const texts = await Promise.all(folders.map((folder) => files.read(join(folder, 'cgroup.procs'))));
  const pids = texts.flatMap((text) => (text ?? '').split('\n').map(Number)).filter((pid) => pid > 0);
  return [...new Set(pids)];
}

/** Whether the out-of-memory killer of the kernel ended a process of the cgroup. */
export async function ranOutOfMemory(
  folders: CgroupFolders,
  files: Pick<CgroupFiles, 'read'> = systemCgroupFiles,
): Promise<boolean> {
  for (const folder of folders) {
    for (const name of ['memory.events', 'memory.oom_control']) {
      const kills = fieldsOf(await files.read(join(folder, name))).get('oom_kill') ?? 0n;
      if (kills > 0n) return true;
    }
  }
  return false;
}

async function cpuNanoseconds(folders: CgroupFolders, files: Pick<CgroupFiles, 'read'>): Promise<bigint | undefined> {
  for (const folder of folders) {
    const microseconds = fieldsOf(await files.read(join(folder, 'cpu.stat'))).get('usage_usec');
    if (microseconds !== undefined) return microseconds * 1000n;
  }
  return undefined;
}

async function memoryUsage(folders: CgroupFolders, files: Pick<CgroupFiles, 'read'>): Promise<CgroupUsage['memory']> {
  const found = await firstOf(folders, ['memory.current', 'memory.usage_in_bytes'], files);
  if (found === undefined) return undefined;
  const stat = fieldsOf(await files.read(join(found.folder, 'memory.stat')));
  // In version 1, only the fields with the prefix `total_` include the children of the cgroup. In version 2, all do.
  const field = (one: string, two = one) => stat.get(`total_${one}`) ?? stat.get(two);
  const [rss, faults, majorFaults] = [field('rss', 'anon'), field('pgfault'), field('pgmajfault')];
  const usageBytes = Number(found.text);
  return {
    usageBytes,
    workingSetBytes: Math.max(0, usageBytes - Number(field('inactive_file') ?? 0n)),
    ...(rss !== undefined && { rssBytes: Number(rss) }),
    ...(faults !== undefined && { pageFaults: faults }),
    ...(majorFaults !== undefined && { majorPageFaults: majorFaults }),
  };
}

async function firstOf(
  folders: CgroupFolders,
  names: readonly string[],
  files: Pick<CgroupFiles, 'read'>,
): Promise<{ readonly folder: string; readonly text: string } | undefined> {
  for (const folder of folders) {
    for (const name of names) {
      const text = await files.read(join(folder, name));
      if (text !== undefined) return { folder, text };
    }
  }
  return undefined;
}

/** Parses lines that consist of a name and a number. */
function fieldsOf(text: string | undefined): ReadonlyMap<string, bigint> {
  const lines = (text ?? '').split('\n').map((line) => /^(\S+) (\d+)$/.exec(line));
  return new Map(lines.flatMap((match) => (match === null ? [] : [[String(match[1]), BigInt(String(match[2]))]])));
}
