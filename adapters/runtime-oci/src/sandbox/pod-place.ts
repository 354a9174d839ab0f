import { join } from 'node:path';
import type { StateDirectory } from '@keelson/container-monitor';
import type { NamespaceOptions, PodSandboxConfig } from '@keelson/container-runtime';

/** Files and namespaces of a pod, as paths on the machine; they exist while the sandbox is ready. */
export interface PodPlace {
  readonly folder: string;
  /** Whose namespaces the pod uses; `pid` is that of containers which do not say. */
  readonly namespaces: NamespaceOptions;
  /** Namespaces that are the pod's own. */
  readonly network?: string;
  readonly ipc?: string;
  readonly uts?: string;
  readonly pid?: string;
  /** Shared memory of the pod, or of the machine. */
  readonly shm: string;
  readonly resolvConf: string;
  readonly hostname: string;
  readonly hosts: string;
}

/** Has a folder for every pod. */
export function podsFolder(state: StateDirectory): string {
  return join(state.root, 'pods');
}

/** `podNetwork`: pods can have a network of their own; else all have that of the machine, whatever was asked for. */
export function podPlace(state: StateDirectory, id: string, config: PodSandboxConfig, podNetwork: boolean): PodPlace {
  const folder = join(podsFolder(state), id);
  const wanted = config.securityContext?.namespaces ?? { network: 'pod', pid: 'container', ipc: 'pod' };
  const namespaces: NamespaceOptions = { ...wanted, network: podNetwork ? wanted.network : 'node' };
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
