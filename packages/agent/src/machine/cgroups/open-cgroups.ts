import { attempt, CgroupError, type CgroupFiles, systemCgroupFiles } from '@keelson/container-host';
import type { Clock, Logger } from '@keelson/core/runtime';
import type { CgroupConfig } from '../../base/config/cgroup-config.ts';
import { MachineError } from '../../base/machine-error.ts';
import { CgroupNames } from './cgroup-names.ts';
import { type CgroupTree, findCgroups } from './cgroup-tree.ts';

export interface OpenCgroupsOptions {
  readonly config: CgroupConfig;
  /** Mount point of the hierarchies. */
  readonly mountpoint: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Default: those of this machine. */
  readonly files?: CgroupFiles;
}

const classes = ['Guaranteed', 'Burstable', 'BestEffort'] as const;

/** True when the configuration requires cgroups. */
function requiresCgroups({ perQos, root, agentGroup, runtimeGroup, systemGroup }: CgroupConfig): boolean {
  return perQos || [root ?? '', agentGroup, runtimeGroup, systemGroup].some((group) => group !== '');
}

async function prepare(config: CgroupConfig, tree: CgroupTree): Promise<void> {
  const names = new CgroupNames(config);
  if (!(await tree.exists(names.root()))) {
    throw new MachineError(
      `--cgroup-root: there is no cgroup ${names.root()} in every hierarchy at ${tree.mountpoint}; create it first`,
    );
  }
  if (config.perQos) for (const qos of classes) await tree.create(names.ofClass(qos));
}

/**
 * Detects the cgroups of the machine and creates the cgroups of the quality-of-service classes. When this is not
 * possible (no root, no hierarchies, mounted read-only), the agent runs without cgroups and logs once how to configure
 * that, unless a given option requires cgroups.
 *
 * @returns undefined when cgroups are not used
 * @throws MachineError when a given option requires cgroups
 */
export async function openCgroups(options: OpenCgroupsOptions): Promise<CgroupTree | undefined> {
  const { config, mountpoint, clock, logger, files = systemCgroupFiles } = options;
  if (!requiresCgroups(config)) return undefined;
  try {
    const tree = await attempt(`cgroups at ${mountpoint} cannot be read`, () => findCgroups(mountpoint, files, clock));
    await prepare(config, tree);
    return tree;
  } catch (error) {
    if (!(error instanceof CgroupError)) throw error;
    if (config.askedBy !== undefined) {
      throw new MachineError(`--${config.askedBy}: cgroups cannot be used here: ${error.message}`);
    }
    logger.warn(
      'cgroups cannot be used: pods run without cgroups, and their limits may have no effect; ' +
        'set --cgroups-per-qos=false --enforce-node-allocatable= to run without cgroups',
      { component: 'cgroups', reason: error.message },
    );
    return undefined;
  }
}
