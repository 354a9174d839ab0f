import type { ContainerRuntime, ImageService } from '@keelson/container-runtime';
import type { ApiClient, Clock, Logger, Metrics, Service } from '@keelson/core';
import type { AgentPeriods } from '../agent-periods.ts';
import type { CgroupAccess } from '../cgroups/node-cgroups.ts';
import type { CpuTopology } from '../cpus/cpu-topology.ts';
import type { NodeUsage } from '../eviction/node-usage.ts';
import type { Machine } from '../node/machine.ts';
import type { NodeFinding } from '../node/node-status.ts';
import type { RunProgram } from '../run-program.ts';
import type { HostAccess } from '../volumes/host/host-access.ts';
import type { Mounter } from '../volumes/mounter.ts';
import type { EventRecorder } from './event-recorder.ts';
import type { PodConfigReader } from './pod-source.ts';
import type { PodStateReader } from './pod-state.ts';
import type { PodStreams } from './pod-streams.ts';

/** What the agent is given beside its configuration. */
export interface AgentDependencies {
  /** Absent: the agent runs alone; nobody hears of the node and of the status of pods. */
  readonly api?: ApiClient;
  /** For what says that the node is alive, which no limit may hold up. Default: `api`. */
  readonly heartbeatApi?: ApiClient;
  readonly runtime: ContainerRuntime;
  readonly images: ImageService;
  /** The pods that are wanted. Its sources are started after the agent, by whoever made them. */
  readonly pods: PodConfigReader;
  /** The machine, as `readMachine()` gives it. */
  readonly machine: Machine;
  readonly events?: EventRecorder;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics?: Metrics;
  /** Below it are `pods` and `containers`. Default `/var/log`. */
  readonly logRoot?: string;
  /** Default: as the options say. */
  readonly mounter?: Mounter;
  /** The machine that volumes are on. Default: this one, or the host of --containerized. */
  readonly host?: HostAccess;
  /** What is used of the machine. Default: as the kernel tells. */
  readonly nodeUsage?: NodeUsage;
  /** Runs the programs by which volumes are mounted and hosts are reached. Default: it runs them. */
  readonly runProgram?: RunProgram;
  /** Absent: cgroups are left alone, whatever the options say. */
  readonly cgroups?: CgroupAccess;
  /** The CPUs of the machine. Default: those that it says it has. */
  readonly topology?: CpuTopology;
  readonly periods?: Partial<AgentPeriods>;
  /** The port that the agent serves on, once it is open. Default: the one of --port. */
  readonly port?: () => number | undefined;
  /** Conditions of the node that the agent's own parts do not know of. */
  readonly nodeConditions?: () => readonly NodeFinding[];
  /** What the node says of its agent. */
  readonly version?: string;
  /** 0..1, for spreading what would otherwise come all at once. */
  readonly random?: () => number;
}

/** The agent's life cycle of pods. `start` resolves when it is under way; it stops without ending any pod. */
export interface Agent extends Service {
  /** What the servers of the agent read. */
  readonly state: PodStateReader;
  readonly streams: PodStreams;
}
