import { readFile } from 'node:fs/promises';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { type Disk, disks, type FileSystem, fileSystems } from './disks.ts';
import { type NetworkDevice, networkDevices, type TopologyNode, topology } from './topology.ts';

/** What the machine has, in the words of `/spec/` and of the statistics port. */
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

/** Where the kernel and the system tell of the machine. */
export interface MachineRoots {
  readonly proc: string;
  readonly sys: string;
  readonly etc: string;
}

const system: MachineRoots = { proc: '/proc', sys: '/sys', etc: '/etc' };

async function line(...path: string[]): Promise<string> {
  return (await readFile(join(...path), 'utf8').catch(() => '')).trim();
}

/** Reads what the machine has. Files that are missing leave their fact empty. */
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
