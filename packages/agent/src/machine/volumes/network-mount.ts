import { join } from 'node:path';
import type { coreV1, Pod } from '@keelson/kinds';
import type { ObjectReader } from '../../base/pod/object-reader.ts';
import type { HostFiles } from '../host/host-files.ts';
import type { MountRequest } from './mounter.ts';
import { VolumeProblem } from './volume-problem.ts';

/** The mount of a network volume. */
export interface NetworkMount extends Omit<MountRequest, 'target'> {
  /** Name of the plugin, which is a part of the path of the volume. */
  readonly plugin: string;
}

/** The mount of an nfs or cephfs volume; undefined for other volumes. @throws VolumeProblem */
export async function networkMount(
  { nfs, cephfs }: coreV1.Volume,
  pod: Pod,
  objects: ObjectReader,
): Promise<NetworkMount | undefined> {
  if (nfs)
    return { plugin: 'nfs', type: 'nfs', source: `${bracketed(nfs.server)}:${nfs.path}`, options: readOnly(nfs) };
  if (cephfs) {
    const key = await cephKey(cephfs, pod, objects);
    const source = `${cephfs.monitors.join(',')}:${cephfs.path ? cephfs.path : '/'}`;
    return {
      plugin: 'cephfs',
      type: 'ceph',
      source,
      options: [...readOnly(cephfs), `name=${cephfs.user || 'admin'}`, key],
    };
  }
  return undefined;
}

/** IPv6 addresses contain colons. */
function bracketed(server: string): string {
  return server.includes(':') && !server.startsWith('[') ? `[${server}]` : server;
}

function readOnly(source: { readonly readOnly?: boolean | undefined }): string[] {
  return source.readOnly === true ? ['ro'] : [];
}

async function cephKey(source: coreV1.CephFSVolumeSource, pod: Pod, objects: ObjectReader): Promise<string> {
  const name = source.secretRef?.name;
  if (!name) return `secretfile=${source.secretFile ? source.secretFile : '/etc/ceph/user.secret'}`;
  const secret = await objects.secret(pod.metadata?.namespace ?? '', name);
  if (secret === undefined) throw new VolumeProblem(`secret "${name}" not found`);
  const [value] = Object.values(secret.data ?? {});
  if (value === undefined) throw new VolumeProblem(`secret "${name}" has no key`);
  return `secret=${Buffer.from(value, 'base64').toString('utf8').trim()}`;
}

/** Directories in which mount(8) searches helpers. */
const helperDirectories = ['/sbin', '/sbin/fs.d', '/sbin/fs', '/usr/sbin'];

/** The helper of each file system type; other types need none. */
const helpers: Readonly<Record<string, string>> = { nfs: 'mount.nfs', ceph: 'mount.ceph' };

/** Checks that the helper of a file system type is installed. @throws VolumeProblem when it is missing */
export async function checkCapabilities(
  type: string,
  files: HostFiles,
  directories: readonly string[] = helperDirectories,
): Promise<void> {
  const helper = helpers[type];
  if (helper === undefined) return;
  for (const directory of directories) {
    if ((await files.info(join(directory, helper), 'follow'))?.type === 'file') return;
  }
  throw new VolumeProblem(
    `the node lacks ${helper}, which volumes of type ${type} need. ` +
      'Verify that your node machine has the required components before attempting to mount this volume type',
  );
}
