import { join } from 'node:path';
import type { StateDirectory } from '@keelson/container-monitor';
import {
  type NamespaceMode,
  type NamespaceOptions,
  type PodSandboxConfig,
  RuntimeError,
} from '@keelson/container-runtime';
import type { OciNamespace } from './oci-spec.ts';

/** Paths of the files and namespaces of a pod. They exist while the sandbox is ready. */
export interface PodPlace {
  readonly folder: string;
  /** Owners of the namespaces of the pod; `pid` is the default for its containers. */
  readonly namespaces: NamespaceOptions;
  /**
   * File at which the pod's own network namespace is mounted. Like `ipc`, `uts` and `pid`, absent when the pod has no
   * own namespace of this type.
   */
  readonly network?: string;
  readonly ipc?: string;
  readonly uts?: string;
  readonly pid?: string;
  /** Directory of the shared memory of the pod or of the machine. */
  readonly shm: string;
  readonly resolvConf: string;
  readonly hostname: string;
  readonly hosts: string;
}

/** The directory that contains the directories of all pods. */
export function podsFolder(state: StateDirectory): string {
  return join(state.root, 'pods');
}

/** Paths of a pod. Without `podNetwork`, all pods use the network of the machine, even if they request their own. */
export function podPlace(state: StateDirectory, id: string, config: PodSandboxConfig, podNetwork: boolean): PodPlace {
  const folder = join(podsFolder(state), id);
  const requested = config.securityContext?.namespaces ?? { network: 'pod', pid: 'container', ipc: 'pod' };
  const namespaces: NamespaceOptions = { ...requested, network: podNetwork ? requested.network : 'node' };
  const own = namespaces.network === 'pod';
  return {
    folder,
    namespaces,
    ...(own && { network: join(folder, 'net'), uts: join(folder, 'uts') }),
    ...(namespaces.ipc === 'pod' && { ipc: join(folder, 'ipc') }),
    ...(namespaces.pid === 'pod' && { pid: join(folder, 'pid') }),
    shm: namespaces.ipc === 'pod' ? join(folder, 'shm') : '/dev/shm',
    resolvConf: join(folder, 'resolv.conf'),
    hostname: join(folder, 'hostname'),
    hosts: join(folder, 'hosts'),
  };
}

/**
 * Namespaces of a container; a cgroup namespace only with `unifiedCgroups`. @throws RuntimeError `InvalidArgument`
 */
export function namespacesOf(pid: NamespaceMode, pod: PodPlace, unifiedCgroups: boolean): OciNamespace[] {
  const namespaces: OciNamespace[] = [{ type: 'mount' }];
  if (pod.network !== undefined) namespaces.push({ type: 'network', path: pod.network });
  if (pod.ipc !== undefined) namespaces.push({ type: 'ipc', path: pod.ipc });
  if (pod.uts !== undefined) namespaces.push({ type: 'uts', path: pod.uts });
  if (unifiedCgroups) namespaces.push({ type: 'cgroup' });
  if (pid === 'container') namespaces.push({ type: 'pid' });
  else if (pid === 'pod') {
    if (pod.pid === undefined) throw new RuntimeError('InvalidArgument', 'the sandbox has no PID namespace to share');
    namespaces.push({ type: 'pid', path: pod.pid });
  }
  return namespaces;
}
