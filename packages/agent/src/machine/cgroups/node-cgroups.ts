import type { CgroupLimits } from '@keelson/container-host';
import type { Clock, Logger } from '@keelson/core/runtime';
import type { AgentPaths } from '../../base/agent-paths.ts';
import type { AgentConfig, ResourceAmounts } from '../../base/config/agent-config.ts';
import type { CgroupConfig } from '../../base/config/cgroup-config.ts';
import type { EventRecorder } from '../../base/events/event-recorder.ts';
import { Repeater } from '../../base/repeater.ts';
import type { Machine } from '../host/machine.ts';
import { limitsOfReserved, limitsOfShare, type NodeShare, podsShare } from './cgroup-limits.ts';
import { CgroupNames } from './cgroup-names.ts';
import type { CgroupTree } from './cgroup-tree.ts';
import { noPodCgroups, type PodCgroups, QosPodCgroups } from './pod-cgroups.ts';
import { Placements, type ProcessTable } from './process-placement.ts';

/** The cgroups that the agent manages, and what it needs to place processes in them. */
export interface CgroupAccess {
  readonly tree: CgroupTree;
  readonly processes: ProcessTable;
  readonly agentPid: number;
  /** Finds the process of the runtime; undefined when it does not run. */
  readonly runtimePid: () => Promise<number | undefined>;
}

export interface NodeCgroupsOptions {
  readonly config: AgentConfig;
  /** Undefined: cgroups are not changed. */
  readonly access: CgroupAccess | undefined;
  readonly machine: Pick<Machine, 'cores' | 'memoryBytes'>;
  readonly paths: AgentPaths;
  readonly periodMs: number;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Cgroups of pods, limits of the node, and placement of processes. */
export interface NodeCgroups {
  readonly pods: PodCgroups;
  /** Resolves when the limits of the node have been written and processes have been moved. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

const nothing = { start: () => Promise.resolve(), stop: () => Promise.resolve() };

/** @throws MachineError when the reservations leave nothing for pods */
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
  const loop = new Repeater({ clock, logger, what: 'reconciliation of cgroups', periodMs, run: round });
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

export interface ShareEnforcementOptions {
  readonly tree: CgroupTree;
  readonly names: CgroupNames;
  readonly config: Pick<CgroupConfig, 'perQos' | 'enforce' | 'clusterReservedGroup' | 'systemReservedGroup'>;
  /** The capacity of the machine. */
  readonly capacity: NodeShare;
  /** The share of all pods. */
  readonly share: NodeShare;
  readonly clusterReserved: ResourceAmounts;
  readonly systemReserved: ResourceAmounts;
  readonly nodeName: string;
  readonly events: EventRecorder;
  readonly logger: Logger;
}

interface Target {
  readonly what: string;
  readonly path: string;
  readonly limits: CgroupLimits;
  /** The agent creates the cgroup; others must exist. */
  readonly ours: boolean;
}

function targetsOf({
  config,
  names,
  capacity,
  share,
  clusterReserved,
  systemReserved,
}: ShareEnforcementOptions): Target[] {
  const { perQos, enforce, clusterReservedGroup, systemReservedGroup } = config;
  const targets: Target[] = [];
  if (perQos) {
    const limits = limitsOfShare(enforce.includes('pods') ? share : capacity);
    targets.push({ what: 'pods', path: names.pods(), limits, ours: true });
  }
  const reserved = [
    ['system-reserved', systemReservedGroup, systemReserved],
    ['cluster-reserved', clusterReservedGroup, clusterReserved],
  ] as const;
  for (const [what, path, amounts] of reserved) {
    if (enforce.includes(what)) targets.push({ what, path, limits: limitsOfReserved(amounts), ours: false });
  }
  return targets;
}

/**
 * Enforces the limits of all pods together and of the reserved groups: see
 * docs/reference/agent-rules.md#cgroups-of-pods. A failure is reported once by an event, and retried each round,
 * because pods may use more than their share until some of them are evicted.
 */
export class ShareEnforcement {
  readonly #options: ShareEnforcementOptions;
  readonly #pending: Target[];
  readonly #reported = new Map<string, string>();

  constructor(options: ShareEnforcementOptions) {
    this.#options = options;
    this.#pending = targetsOf(options);
  }

  async round(): Promise<void> {
    for (const target of [...this.#pending]) {
      try {
        await this.#enforce(target);
        this.#pending.splice(this.#pending.indexOf(target), 1);
        this.#record(
          'Normal',
          'NodeAllocatableEnforced',
          `Updated the limits of ${target.what} on the cgroup ${target.path}`,
        );
      } catch (error) {
        this.#report(target, error instanceof Error ? error.message : String(error));
      }
    }
  }

  async #enforce({ path, limits, ours }: Target): Promise<void> {
    const { tree } = this.#options;
    if (ours) await tree.create(path);
    await tree.limit(path, limits);
  }

  #report({ what, path }: Target, problem: string): void {
    if (this.#reported.get(what) === problem) return;
    this.#reported.set(what, problem);
    const message = `Failed to enforce the limits of ${what} on the cgroup ${path}: ${problem}`;
    this.#options.logger.warn('limits of a cgroup could not be enforced', {
      component: 'cgroups',
      what,
      path,
      problem,
    });
    this.#record('Warning', 'FailedNodeAllocatableEnforcement', message);
  }

  #record(type: 'Normal' | 'Warning', reason: string, message: string): void {
    const { nodeName, events } = this.#options;
    events.record({ apiVersion: 'v1', kind: 'Node', name: nodeName, uid: nodeName }, type, reason, message);
  }
}
