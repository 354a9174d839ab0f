import type { Clock, Logger } from '@keelson/core';
import type { CgroupConfig } from '../../base/config/cgroup-config.ts';
import { MachineError } from '../../base/machine-error.ts';
import { attempt, CgroupError, type CgroupFiles, systemCgroupFiles } from './cgroup-files.ts';
import { CgroupNames } from './cgroup-names.ts';
import { type CgroupTree, findCgroups } from './cgroup-tree.ts';

export interface OpenCgroupsOptions {
  readonly config: CgroupConfig;
  /** Where the hierarchies are mounted. */
  readonly mountpoint: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Default: those of this machine. */
  readonly files?: CgroupFiles;
}

const classes = ['Guaranteed', 'Burstable', 'BestEffort'] as const;

/** Whether anything is to be done with cgroups. */
function isWanted({ perQos, root, agentGroup, runtimeGroup, systemGroup }: CgroupConfig): boolean {
  return perQos || [root ?? '', agentGroup, runtimeGroup, systemGroup].some((group) => group !== '');
}

async function prepare(config: CgroupConfig, tree: CgroupTree): Promise<void> {
  const names = new CgroupNames(config);
  if (!(await tree.exists(names.root()))) {
    throw new MachineError(
      `--cgroup-root: there is no cgroup ${names.root()} in every hierarchy at ${tree.mountpoint}; make it first`,
    );
  }
  if (config.perQos) for (const qos of classes) await tree.create(names.ofClass(qos));
}

/**
 * Opens the cgroups of the machine and makes the groups of pods. Where that is not possible (no root, no hierarchies,
 * mounted read-only) an agent goes on without, and the log says once how to say that this is meant, unless an option
 * was given that cannot do without cgroups.
 *
 * @returns undefined when pods and processes stay where they are
 * @throws MachineError
 */
export async function openCgroups(options: OpenCgroupsOptions): Promise<CgroupTree | undefined> {
  const { config, mountpoint, clock, logger, files = systemCgroupFiles } = options;
  if (!isWanted(config)) return undefined;
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
      'cgroups cannot be used here: pods have none, and their limits may have no effect; ' +
        'give --cgroups-per-qos=false --enforce-node-allocatable= where that is meant',
      { component: 'cgroups', reason: error.message },
    );
    return undefined;
  }
}
