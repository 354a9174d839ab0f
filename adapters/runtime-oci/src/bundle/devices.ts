import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Device, RuntimeError } from '@keelson/container-runtime';
import type { OciDevice, OciDeviceRule } from './oci-spec.ts';

export interface DeviceAccess {
  readonly devices: readonly OciDevice[];
  readonly rules: readonly OciDeviceRule[];
}

/**
 * Denies access to all devices. The binary itself adds rules for the standard devices of every container, such as null,
 * zero, random and terminals.
 */
const forbidden: OciDeviceRule = { allow: false, access: 'rwm' };

/** Directories of /dev that are separate file systems in a container. */
const ownFolders = new Set(['pts', 'shm', 'mqueue', 'fd']);

/**
 * Devices of an unprivileged container. A requested directory grants all devices in it. @throws RuntimeError
 * `InvalidArgument`
 */
export async function devicesOf(requested: readonly Device[]): Promise<DeviceAccess> {
  const devices: OciDevice[] = [];
  const rules = [forbidden];
  for (const { hostPath, containerPath, permissions } of requested) {
    if (!/^[rwm]{1,3}$/.test(permissions))
      throw new RuntimeError('InvalidArgument', `invalid device permissions "${permissions}"`);
    const found = await devicesAt(hostPath, containerPath);
    if (found.length === 0) throw new RuntimeError('InvalidArgument', `no device at "${hostPath}"`);
    for (const device of found) {
      devices.push(device);
      rules.push({ allow: true, type: device.type, major: device.major, minor: device.minor, access: permissions });
    }
  }
  return { devices, rules };
}

/** All devices of the machine, for a privileged container. */
export async function allDevices(): Promise<DeviceAccess> {
  return { devices: await devicesAt('/dev', '/dev'), rules: [{ allow: true, access: 'rwm' }] };
}

async function devicesAt(hostPath: string, containerPath: string): Promise<OciDevice[]> {
  const entry = await stat(hostPath).catch(() => undefined);
  if (entry === undefined) return [];
  if (entry.isDirectory()) {
    const names = (await readdir(hostPath)).filter((name) => hostPath !== '/dev' || !ownFolders.has(name));
    return (await Promise.all(names.map((name) => devicesAt(join(hostPath, name), join(containerPath, name))))).flat();
  }
  if (!entry.isCharacterDevice() && !entry.isBlockDevice()) return [];
  const number = BigInt(entry.rdev);
  return [
    {
      path: containerPath,
      type: entry.isBlockDevice() ? 'b' : 'c',
      major: Number(((number >> 8n) & 0xfffn) | ((number >> 32n) & ~0xfffn)),
      minor: Number((number & 0xffn) | ((number >> 12n) & ~0xffn)),
      fileMode: entry.mode & 0o777,
      uid: entry.uid,
      gid: entry.gid,
    },
  ];
}
