import { existsSync } from 'node:fs';
import { networkInterfaces } from 'node:os';

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

/** IPv4 first, since that is what most pods have. */
function findNodeIp(): string {
  const outside = Object.values(networkInterfaces()).flatMap((addresses) =>
    (addresses ?? []).filter(({ internal }) => !internal),
  );
  return (outside.find(({ family }) => family === 'IPv4') ?? outside[0])?.address ?? '127.0.0.1';
}
