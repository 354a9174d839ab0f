import { existsSync } from 'node:fs';
import { findNodeIp } from '@keelson/container-runtime';

/** What the adapter knows of the machine that the daemon runs on. */
export interface Machine {
  /** The daemon sees the files and processes that this process sees. */
  readonly local: boolean;
  /** The machine has the second version of cgroups and nothing else. */
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
