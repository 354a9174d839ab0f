import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface Core {
  readonly core_id: number;
  readonly thread_ids: readonly number[];
}

/** A part of the machine with memory of its own. */
export interface TopologyNode {
  readonly node_id: number;
  /** Bytes. */
  readonly memory: number;
  readonly cores: readonly Core[];
}

export interface NetworkDevice {
  readonly name: string;
  readonly mac_address: string;
  /** Mbit/s; 0 where the device does not say. */
  readonly speed: number;
  readonly mtu: number;
}

async function read(...path: string[]): Promise<string> {
  return (await readFile(join(...path), 'utf8').catch(() => '')).trim();
}

/** Numbers at the end of names such as `node0`, in order. */
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

/** Memory and cores by the node they belong to; one node where the kernel tells of none. */
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

/**
 * Network devices that stand for hardware, or look like it to the machine: neither the loopback nor ends of pods'
 * links.
 */
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
