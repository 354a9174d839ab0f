import type { ContainerRuntime, ImageService } from '@keelson/container-runtime';
import type { ApiClient } from '@keelson/core';
import type { Clock, Logger, Metrics, Service } from '@keelson/core/runtime';
import type { AgentPeriods } from '../base/config/agent-periods.ts';
import type { PodQueries } from '../base/contracts/pod-queries.ts';
import type { PodConfigReader } from '../base/contracts/pod-source.ts';
import type { PodStreams } from '../base/contracts/pod-streams.ts';
import type { EventRecorder } from '../base/events/event-recorder.ts';
import type { RunProgram } from '../base/run-program.ts';
import type { CgroupAccess } from '../machine/cgroups/node-cgroups.ts';
import type { CpuTopology } from '../machine/cpus/cpu-topology.ts';
import type { HostAccess } from '../machine/host/host-access.ts';
import type { Machine } from '../machine/host/machine.ts';
import type { NodeUsage } from '../machine/stats/node-usage.ts';
import type { Mounter } from '../machine/volumes/mounter.ts';
import type { NodeFinding } from '../node/node-status.ts';

/** The dependencies of the agent, in addition to its configuration. */
export interface AgentDependencies {
  /** When absent, the agent runs without an API server and does not report the node and the status of pods. */
  readonly api?: ApiClient;
  /** The client for node heartbeats, which must not be rate limited. Default: `api`. */
  readonly heartbeatApi?: ApiClient;
  readonly runtime: ContainerRuntime;
  readonly images: ImageService;
  /** The desired pods. The caller starts its sources after the agent. */
  readonly pods: PodConfigReader;
  /** The machine, as `readMachine()` returns it. */
  readonly machine: Machine;
  readonly events?: EventRecorder;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics?: Metrics;
  /** The parent directory of the log directories `pods` and `containers`. Default: `/var/log`. */
  readonly logRoot?: string;
  /** Default: the mounter that the options select. */
  readonly mounter?: Mounter;
  /** Access to the machine on which volumes are mounted. Default: this machine, or its host with --containerized. */
  readonly host?: HostAccess;
  /** The resource usage of the machine. Default: as the kernel reports it. */
  readonly nodeUsage?: NodeUsage;
  /** Runs the programs that mount volumes and access the host. Default: child processes. */
  readonly runProgram?: RunProgram;
  /** When absent, the agent does not change cgroups, independent of the options. */
  readonly cgroups?: CgroupAccess;
  /** The CPUs of the machine. Default: as the kernel reports them. */
  readonly topology?: CpuTopology;
  readonly periods?: Partial<AgentPeriods>;
  /** The port that the agent serves on; undefined before it is open. Default: that of --port. */
  readonly port?: () => number | undefined;
  /** Additional conditions of the node. */
  readonly nodeConditions?: () => readonly NodeFinding[];
  /** The version of the agent in the status of the node. */
  readonly version?: string;
  /** Returns a number in [0, 1), which spreads periodic work over time. Default: `Math.random`. */
  readonly random?: () => number;
}

/** The agent as a service. `start` resolves when its parts are started; `stop` does not end any pod. */
export interface Agent extends Service {
  /** The state that the servers of the agent read. */
  readonly state: PodQueries;
  readonly streams: PodStreams;
}
