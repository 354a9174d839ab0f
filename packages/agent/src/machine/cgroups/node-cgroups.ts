import type { Clock, Logger } from '@keelson/core';
import type { AgentPaths } from '../../base/agent-paths.ts';
import type { AgentConfig } from '../../base/config/agent-config.ts';
import type { EventRecorder } from '../../base/contracts/event-recorder.ts';
import { Repeater } from '../../base/repeater.ts';
import type { Machine } from '../host/machine.ts';
import { CgroupNames } from './cgroup-names.ts';
import type { CgroupTree } from './cgroup-tree.ts';
import { podsShare } from './node-shares.ts';
import { Placements } from './placements.ts';
import { noPodCgroups, type PodCgroups, QosPodCgroups } from './pod-cgroups.ts';
import type { ProcessTable } from './process-table.ts';
import { ShareEnforcement } from './share-enforcement.ts';

/** The cgroups that an agent may change, and what it must know to place processes in them. */
export interface CgroupAccess {
  readonly tree: CgroupTree;
  readonly processes: ProcessTable;
  readonly agentPid: number;
  /** Finds the process of the runtime; undefined when it is not there now. */
  readonly runtimePid: () => Promise<number | undefined>;
}

export interface NodeCgroupsOptions {
  readonly config: AgentConfig;
  /** Absent: cgroups are left alone. */
  readonly access: CgroupAccess | undefined;
  readonly machine: Pick<Machine, 'cores' | 'memoryBytes'>;
  readonly paths: AgentPaths;
  readonly periodMs: number;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** All that the agent does with cgroups. */
export interface NodeCgroups {
  readonly pods: PodCgroups;
  /** Resolves when limits of the node are written, and processes placed. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

const nothing = { start: () => Promise.resolve(), stop: () => Promise.resolve() };

/** @throws MachineError when nothing is left for pods */
export function createNodeCgroups(options: NodeCgroupsOptions): NodeCgroups {
  const { config, access, machine, clock, logger, periodMs } = options;
  if (access === undefined) return { pods: noPodCgroups(), ...nothing };
  const { tree } = access;
  const { cgroups, clusterReserved, systemReserved, cpuCfsQuota, nodeName } = config;
  const names = new CgroupNames(cgroups);
  const share = podsShare(machine, clusterReserved, systemReserved);
  const reserve = { allocatableBytes: share.memoryBytes, percent: cgroups.reservedMemoryPercent };
  const pods = new QosPodCgroups({ ...options, tree, names, reserve, cpuCfsQuota });
  const capacity = podsShare(machine);
  const shares = new ShareEnforcement({
    ...options,
    ...{ tree, names, capacity, share, clusterReserved, systemReserved, nodeName },
    config: cgroups,
  });
  const placements = new Placements({ ...access, config: cgroups, logger });
  const round = async () => {
    await placements.round();
    await shares.round();
    if (cgroups.perQos) await pods.restore();
  };
  const loop = new Repeater({ clock, logger, what: 'keeping of cgroups', periodMs, run: round });
  return {
    pods: cgroups.perQos ? pods : noPodCgroups(cgroups.root),
    async start() {
      await placements.round();
      await shares.round();
      loop.start();
    },
    stop: () => loop.stop(),
  };
}
