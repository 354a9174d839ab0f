import type { ContainerRuntime, ImageService } from '@keelson/container-runtime';
import type { ApiClient, Clock, Logger, Metrics, Service } from '@keelson/core';
import type { AgentPeriods } from '../base/config/agent-periods.ts';
import type { EventRecorder } from '../base/contracts/event-recorder.ts';
import type { PodQueries } from '../base/contracts/pod-queries.ts';
import type { PodConfigReader } from '../base/contracts/pod-source.ts';
import type { PodStreams } from '../base/contracts/pod-streams.ts';
import type { RunProgram } from '../base/run-program.ts';
import type { CgroupAccess } from '../machine/cgroups/node-cgroups.ts';
import type { CpuTopology } from '../machine/cpus/cpu-topology.ts';
import type { HostAccess } from '../machine/host/host-access.ts';
import type { Machine } from '../machine/host/machine.ts';
import type { NodeUsage } from '../machine/stats/node-usage.ts';
import type { Mounter } from '../machine/volumes/mounter.ts';
import type { NodeFinding } from '../node/node-status.ts';

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
  readonly state: PodQueries;
  readonly streams: PodStreams;
}
