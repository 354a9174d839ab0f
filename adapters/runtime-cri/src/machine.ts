import { existsSync } from 'node:fs';
import { findNodeIp } from '@keelson/container-runtime';

/** Properties of the machine on which the daemon runs. */
export interface Machine {
  /** Whether the daemon runs on this machine, so that this process can access the same files and processes. */
  readonly local: boolean;
  /** Whether the machine has only cgroups of version 2. */
  readonly unifiedCgroups: boolean;
  readonly nodeIp: () => string;
}

export function inspectMachine(local: boolean, nodeIp: string | (() => string) = findNodeIp): Machine {
  return {
    local,
    unifiedCgroups: local && existsSync('/sys/fs/cgroup/cgroup.controllers'),
    nodeIp: typeof nodeIp === 'string' ? () => nodeIp : nodeIp,
  };
}
