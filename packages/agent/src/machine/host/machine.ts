import { readFile } from 'node:fs/promises';
import { arch, cpus, hostname, networkInterfaces, release, totalmem } from 'node:os';
import { isIPv4 } from '@keelson/core';

/** Facts about the machine. */
export interface Machine {
  readonly cores: number;
  readonly memoryBytes: number;
  readonly hostName: string;
  readonly machineId: string;
  readonly systemUuid: string;
  readonly bootId: string;
  readonly kernelVersion: string;
  readonly osImage: string;
  /** `amd64`, `arm64`, ... */
  readonly architecture: string;
  /** Addresses that other machines can reach; the address of the default route is first. */
  readonly addresses: readonly string[];
}

const architectures: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' };

/** Reads the facts about the machine. A fact whose file is missing is empty. */
export async function readMachine(): Promise<Machine> {
  const [machineId, uuid, bootId, release1, routes] = await Promise.all(
    [
      '/etc/machine-id',
      '/sys/class/dmi/id/product_uuid',
      '/proc/sys/kernel/random/boot_id',
      '/etc/os-release',
      '/proc/net/route',
    ].map(read),
  );
  return {
    cores: Math.max(1, cpus().length),
    memoryBytes: totalmem(),
    hostName: hostname().trim().toLowerCase(),
    machineId: machineId ?? '',
    systemUuid: uuid || machineId || '',
    bootId: bootId ?? '',
    kernelVersion: release(),
    osImage: /^PRETTY_NAME="?([^"\n]*)/m.exec(release1 ?? '')?.[1] ?? 'Linux',
    architecture: architectures[arch()] ?? arch(),
    addresses: addresses(defaultInterface(routes ?? '')),
  };
}

async function read(path: string): Promise<string> {
  return (await readFile(path, 'utf8').catch(() => '')).trim();
}

/** The interface of the route to 0.0.0.0. */
function defaultInterface(routes: string): string | undefined {
  const line = routes.split('\n').find((text) => text.split(/\s+/)[1] === '00000000');
  return line?.split(/\s+/)[0];
}

function addresses(first: string | undefined): string[] {
  const found = Object.entries(networkInterfaces()).sort(([a], [b]) => Number(b === first) - Number(a === first));
  const all = found.flatMap(([, list]) =>
    (list ?? []).filter(({ internal }) => !internal).map(({ address }) => address),
  );
  const reachable = all.filter((address) => !address.startsWith('fe80:') && !address.startsWith('169.254.'));
  return [...reachable.filter(isIPv4), ...reachable.filter((address) => !isIPv4(address))];
}
