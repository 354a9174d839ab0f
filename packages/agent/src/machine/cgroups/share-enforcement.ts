import type { Logger } from '@keelson/core';
import type { ResourceAmounts } from '../../base/config/agent-config.ts';
import type { CgroupConfig } from '../../base/config/cgroup-config.ts';
import type { EventRecorder } from '../../base/contracts/event-recorder.ts';
import type { CgroupNames } from './cgroup-names.ts';
import type { CgroupTree } from './cgroup-tree.ts';
import type { CgroupLimits } from './limit-files.ts';
import { limitsOfReserved, limitsOfShare, type NodeShare } from './node-shares.ts';

export interface ShareEnforcementOptions {
  readonly tree: CgroupTree;
  readonly names: CgroupNames;
  readonly config: Pick<CgroupConfig, 'perQos' | 'enforce' | 'clusterReservedGroup' | 'systemReservedGroup'>;
  /** What the machine has. */
  readonly capacity: NodeShare;
  /** What pods can have of it. */
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
  /** The agent makes it; others have to be there. */
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
  readonly #left: Target[];
  readonly #told = new Map<string, string>();

  constructor(options: ShareEnforcementOptions) {
    this.#options = options;
    this.#left = targetsOf(options);
  }

  async round(): Promise<void> {
    for (const target of [...this.#left]) {
      try {
        await this.#enforce(target);
        this.#left.splice(this.#left.indexOf(target), 1);
        this.#record(
          'Normal',
          'NodeAllocatableEnforced',
          `Updated the limits of ${target.what} on the cgroup ${target.path}`,
        );
      } catch (error) {
        this.#tell(target, error instanceof Error ? error.message : String(error));
      }
    }
  }

  async #enforce({ path, limits, ours }: Target): Promise<void> {
    const { tree } = this.#options;
    if (ours) await tree.create(path);
    await tree.limit(path, limits);
  }

  #tell({ what, path }: Target, problem: string): void {
    if (this.#told.get(what) === problem) return;
    this.#told.set(what, problem);
    const message = `Failed to enforce the limits of ${what} on the cgroup ${path}: ${problem}`;
    this.#options.logger.warn('a share of the machine is not enforced', { component: 'cgroups', what, path, problem });
    this.#record('Warning', 'FailedNodeAllocatableEnforcement', message);
  }

  #record(type: 'Normal' | 'Warning', reason: string, message: string): void {
    const { nodeName, events } = this.#options;
    events.record({ apiVersion: 'v1', kind: 'Node', name: nodeName, uid: nodeName }, type, reason, message);
  }
}
