import { readdir, readFile, statfs } from 'node:fs/promises';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';

/** Hardware of the machine with the field names of `/spec/` and of the statistics port. */
export interface MachineInfo {
  readonly num_cores: number;
  /** Bytes. */
  readonly memory_capacity: number;
  readonly machine_id: string;
  readonly system_uuid: string;
  readonly boot_id: string;
  readonly filesystems: readonly FileSystem[];
  /** By device number, `major:minor`. */
  readonly disk_map: Readonly<Record<string, Disk>>;
  readonly network_devices: readonly NetworkDevice[];
  readonly topology: readonly TopologyNode[];
}

/** Directories in which the kernel and the system describe the machine. */
export interface MachineRoots {
  readonly proc: string;
  readonly sys: string;
  readonly etc: string;
}

const system: MachineRoots = { proc: '/proc', sys: '/sys', etc: '/etc' };

async function line(...path: string[]): Promise<string> {
  return (await readFile(join(...path), 'utf8').catch(() => '')).trim();
}

/** Reads the hardware of the machine. A fact whose file is missing is empty. */
export async function readMachineInfo(roots: MachineRoots = system): Promise<MachineInfo> {
  const memory_capacity = totalmem();
  const [machine_id, system_uuid, boot_id, filesystems, disk_map, network_devices, nodes] = await Promise.all([
    line(roots.etc, 'machine-id'),
    line(roots.sys, 'class/dmi/id/product_uuid'),
    line(roots.proc, 'sys/kernel/random/boot_id'),
    fileSystems(roots.proc),
    disks(roots.sys),
    networkDevices(roots.sys),
    topology(roots.sys, memory_capacity),
  ]);
  return {
    ...{ num_cores: cpus().length, memory_capacity, machine_id, system_uuid: system_uuid || machine_id, boot_id },
    ...{ filesystems, disk_map, network_devices, topology: nodes },
  };
}

export interface Core {
  readonly core_id: number;
  readonly thread_ids: readonly number[];
}

/** A NUMA node. */
export interface TopologyNode {
  readonly node_id: number;
  /** Bytes. */
  readonly memory: number;
  readonly cores: readonly Core[];
}

export interface NetworkDevice {
  readonly name: string;
  readonly mac_address: string;
  /** Mbit/s; 0 when the device does not report it. */
  readonly speed: number;
  readonly mtu: number;
}

async function read(...path: string[]): Promise<string> {
  return (await readFile(join(...path), 'utf8').catch(() => '')).trim();
}

/** Numbers at the end of names such as `node0`, sorted. */
async function numbered(folder: string, prefix: string): Promise<number[]> {
  const names = await readdir(folder).catch(() => []);
  return names
    .map((name) => new RegExp(`^${prefix}(\\d+)$`).exec(name)?.[1])
    .filter((digits) => digits !== undefined)
    .map(Number)
    .sort((a, b) => a - b);
}

async function cores(sysRoot: string, threads: readonly number[]): Promise<Core[]> {
  const byCore = new Map<string, number[]>();
  for (const thread of threads) {
    const folder = join(sysRoot, 'devices/system/cpu', `cpu${thread}`, 'topology');
    const key = `${await read(folder, 'physical_package_id')}/${(await read(folder, 'core_id')) || thread}`;
    byCore.set(key, [...(byCore.get(key) ?? []), thread]);
  }
  return [...byCore].map(([key, thread_ids]) => ({ core_id: Number(key.split('/')[1]), thread_ids }));
}

/** Memory and cores by NUMA node; a single node when the kernel reports none. */
export async function topology(sysRoot: string, memoryBytes: number): Promise<TopologyNode[]> {
  const folder = join(sysRoot, 'devices/system/node');
  const nodes = await numbered(folder, 'node');
  if (nodes.length === 0) {
    const threads = await numbered(join(sysRoot, 'devices/system/cpu'), 'cpu');
    return [{ node_id: 0, memory: memoryBytes, cores: await cores(sysRoot, threads) }];
  }
  return Promise.all(
    nodes.map(async (node_id) => {
      const own = join(folder, `node${node_id}`);
      const kilobytes = /MemTotal:\s+(\d+) kB/.exec(await read(own, 'meminfo'))?.[1];
      return {
        node_id,
        memory: kilobytes === undefined ? memoryBytes : Number(kilobytes) * 1024,
        cores: await cores(sysRoot, await numbered(own, 'cpu')),
      };
    }),
  );
}

/** Physical network devices, without the loopback device and the host ends of pod links. */
export async function networkDevices(sysRoot: string): Promise<NetworkDevice[]> {
  const folder = join(sysRoot, 'class/net');
  const names = (await readdir(folder).catch(() => [])).filter(
    (name) => !/^(lo$|veth|docker|cni|cbr|dummy|tunl|sit)/.test(name),
  );
  return Promise.all(
    names.sort().map(async (name) => {
      const [mac_address, speed, mtu] = await Promise.all(
        ['address', 'speed', 'mtu'].map((file) => read(folder, name, file)),
      );
      return { name, mac_address: mac_address ?? '', speed: Math.max(0, Number(speed)), mtu: Number(mtu) };
    }),
  );
}

/** A file system on a block device. */
export interface FileSystem {
  readonly device: string;
  readonly type: string;
  readonly capacity: number;
  readonly inodes: number;
  readonly has_inodes: boolean;
}

export interface Disk {
  readonly name: string;
  readonly major: number;
  readonly minor: number;
  /** Bytes. */
  readonly size: number;
  readonly scheduler: string;
}

const sectorBytes = 512;
/** Decodes octal escapes, which stand for spaces in mount tables. */
const unescaped = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, code) => String.fromCharCode(Number.parseInt(code, 8)));

/** Each device once, with its first mount point. */
export async function fileSystems(procRoot: string, statOf = statfs): Promise<FileSystem[]> {
  const table = await readFile(join(procRoot, 'self/mounts'), 'utf8').catch(() => '');
  const first = new Map<string, readonly [path: string, type: string]>();
  for (const line of table.split('\n')) {
    const [device = '', path = '', type = ''] = line.split(' ').map(unescaped);
    if (device.startsWith('/dev/') && !first.has(device)) first.set(device, [path, type]);
  }
  const found = await Promise.all(
    [...first].map(async ([device, [path, type]]) => {
      const sizes = await statOf(path).catch(() => undefined);
      if (sizes === undefined) return [];
      const { blocks, bsize, files } = sizes;
      return [{ device, type, capacity: blocks * bsize, inodes: files, has_inodes: files > 0 }];
    }),
  );
  return found.flat();
}

/** Disks with a size above 0, by device number. */
export async function disks(sysRoot: string): Promise<Record<string, Disk>> {
  const folder = join(sysRoot, 'block');
  const names = await readdir(folder).catch(() => []);
  const read = async (name: string, file: string) =>
    (await readFile(join(folder, name, file), 'utf8').catch(() => '')).trim();
  const rows = await Promise.all(
    names.sort().map(async (name) => {
      const [device, size, scheduler] = await Promise.all([
        read(name, 'dev'),
        read(name, 'size'),
        read(name, 'queue/scheduler'),
      ]);
      const [major = 0, minor = 0] = device.split(':').map(Number);
      const used = /\[(.+)\]/.exec(scheduler)?.[1] ?? 'none';
      return [device, { name, major, minor, size: Number(size) * sectorBytes, scheduler: used }] as const;
    }),
  );
  return Object.fromEntries(rows.filter(([device, { size }]) => device !== '' && size > 0));
}
