import { stat } from 'node:fs/promises';
import { posix } from 'node:path';
import { passable } from '@keelson/container-monitor';
import { type Mount, RuntimeError } from '@keelson/container-runtime';
import type { OciMount } from './oci-spec.ts';
import type { PodPlace } from './pod-place.ts';

export interface MountInput {
  readonly mounts: readonly Mount[];
  readonly pod: PodPlace;
  readonly privileged: boolean;
  readonly readonlyRootfs: boolean;
}

const propagations = { private: 'rprivate', hostToContainer: 'rslave', bidirectional: 'rshared' } as const;

/**
 * Mounts of a container: kernel file systems, files of the pod, and the configured mounts. A configured mount replaces
 * another one at the same path.
 *
 * @throws RuntimeError `InvalidArgument`
 */
export async function mountsOf(input: MountInput): Promise<OciMount[]> {
  const own: OciMount[] = [];
  for (const mount of input.mounts) own.push(await bindOf(mount));
  const configured = new Set(own.map(({ destination }) => destination));
  return [...kernelMounts(input.privileged), ...podMounts(input)]
    .filter(({ destination }) => !configured.has(destination))
    .concat(own);
}

function kernelMounts(privileged: boolean): OciMount[] {
  const access = privileged ? 'rw' : 'ro';
  const at = (destination: string, type: string, source: string, ...options: string[]) => ({
    destination,
    type,
    source,
    options,
  });
  return [
    at('/proc', 'proc', 'proc', 'nosuid', 'noexec', 'nodev'),
    at('/dev', 'tmpfs', 'tmpfs', 'nosuid', 'strictatime', 'mode=755', 'size=65536k'),
    at('/dev/pts', 'devpts', 'devpts', 'nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620', 'gid=5'),
    at('/dev/mqueue', 'mqueue', 'mqueue', 'nosuid', 'noexec', 'nodev'),
    at('/sys', 'sysfs', 'sysfs', 'nosuid', 'noexec', 'nodev', access),
    at('/sys/fs/cgroup', 'cgroup', 'cgroup', 'nosuid', 'noexec', 'nodev', 'relatime', access),
  ];
}

function podMounts({ pod, readonlyRootfs }: MountInput): OciMount[] {
  const access = readonlyRootfs ? 'ro' : 'rw';
  const bind = (source: string, destination: string, ...options: string[]) => {
    return { destination, type: 'bind', source, options: ['rbind', 'rprivate', ...options] };
  };
  return [
    bind(pod.shm, '/dev/shm', 'nosuid', 'nodev', 'noexec', 'rw'),
    bind(pod.resolvConf, '/etc/resolv.conf', access),
    bind(pod.hostname, '/etc/hostname', access),
    bind(pod.hosts, '/etc/hosts', access),
  ];
}

/** The binary resolves symbolic links of the image within the root and creates missing mount points. */
async function bindOf({
  hostPath,
  containerPath,
  readonly = false,
  propagation = 'private',
}: Mount): Promise<OciMount> {
  if (!hostPath.startsWith('/') || !containerPath.startsWith('/'))
    throw new RuntimeError('InvalidArgument', `mount paths must be absolute: "${hostPath}" at "${containerPath}"`);
  for (const path of [hostPath, containerPath]) passable(path, /\0/, 'mount path');
  if ((await stat(hostPath).catch(() => undefined)) === undefined)
    throw new RuntimeError('InvalidArgument', `mount source does not exist: "${hostPath}"`);
  return {
    destination: posix.normalize(containerPath),
    type: 'bind',
    source: hostPath,
    options: ['rbind', propagations[propagation], readonly ? 'ro' : 'rw'],
  };
}

/** Propagation of the container's root mount, without which the propagation of its other mounts has no effect. */
export function rootPropagationOf(mounts: readonly Mount[]): 'rslave' | 'rshared' | undefined {
  if (mounts.some(({ propagation }) => propagation === 'bidirectional')) return 'rshared';
  if (mounts.some(({ propagation }) => propagation === 'hostToContainer')) return 'rslave';
  return undefined;
}
