import { createNodeCgroups, type NodeCgroups } from '../machine/cgroups/node-cgroups.ts';
import { type CpuManager, createCpuManager } from '../machine/cpus/cpu-manager.ts';
import { readTopology } from '../machine/cpus/cpu-topology.ts';
import { ImagePuller } from '../machine/images/image-puller.ts';
import { CloudCredentials } from '../machine/images/pull-credentials.ts';
import { PodRange } from '../machine/network/pod-network.ts';
import { machineUsage, type NodeUsage } from '../machine/stats/node-usage.ts';
import { VolumeStats } from '../machine/stats/volume-stats.ts';
import { createVolumes, type Volumes } from '../machine/volumes/create-volumes.ts';
import type { AgentContext } from './agent-context.ts';
import type { RuntimeParts } from './runtime-parts.ts';

/** The parts that read or change the machine. */
export interface MachineParts {
  readonly cgroups: NodeCgroups;
  readonly cpus: CpuManager;
  readonly volumes: Volumes;
  readonly volumeStats: VolumeStats;
  readonly usage: NodeUsage;
  readonly credentials: CloudCredentials;
  readonly puller: ImagePuller;
  readonly podRange: PodRange;
}

/** @throws MachineError when the reservations leave nothing for pods */
export function createMachineParts(context: AgentContext, { states }: RuntimeParts): MachineParts {
  const { config, dependencies, runtime, images, clock, logger, paths, periods, callTimeoutMs } = context;
  const cgroups = createNodeCgroups({
    ...{ config, machine: dependencies.machine, paths, clock, logger },
    access: dependencies.cgroups,
    periodMs: periods.cgroups,
    events: context.recorder,
  });
  const cpus = createCpuManager({
    ...{ config, runtime, states, clock, logger, callTimeoutMs },
    topology: async () => dependencies.topology ?? readTopology('/sys/devices/system/cpu'),
  });
  const volumes = createVolumes({ config, paths, dependencies, onInUse: () => context.changes.node.notify() });
  const { files } = volumes.host;
  const volumeStats = new VolumeStats({
    ...{ files, clock, logger, random: context.random },
    volumes: () => volumes.volumes.measured(),
    periodMs: config.volumeStatsMs,
  });
  const usage = dependencies.nodeUsage ?? machineUsage(files);
  const credentials = new CloudCredentials(config.images, logger);
  const puller = new ImagePuller({
    ...{ images, cloud: credentials, clock, events: context.events, callTimeoutMs },
    config: config.images,
    pullProgress: runtime.capabilities.pullProgress,
  });
  const podRange = new PodRange({ runtime, callTimeoutMs, logger });
  return { cgroups, cpus, volumes, volumeStats, usage, credentials, puller, podRange };
}
