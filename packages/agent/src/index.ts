export { createAgent } from './agent.ts';
export { type AgentPeriods, defaultPeriods } from './agent-periods.ts';
export { type AgentClients, type ClientSourceOptions, createAgentClients } from './api/client-source.ts';
export type { CgroupAccess } from './cgroups/node-cgroups.ts';
export { type OpenCgroupsOptions, openCgroups } from './cgroups/open-cgroups.ts';
export { type ProcessTable, processTable } from './cgroups/process-table.ts';
export { type CommandContext, main } from './command/main.ts';
export { type RunAgentOptions, type RunningAgent, runAgent } from './command/run-agent.ts';
export type {
  AgentConfig,
  AllowedSources,
  ApiAccessConfig,
  CloudConfig,
  CloudInstance,
  DnsConfig,
  EvictionConfig,
  ImageConfig,
  NetworkConfig,
  NodeConfig,
  PodLimits,
  ResourceAmounts,
  RuntimeChoice,
  ServerConfig,
  SourceConfig,
} from './contracts/agent-config.ts';
export type { Agent, AgentDependencies } from './contracts/agent-dependencies.ts';
export type { CgroupConfig, EnforcedShare } from './contracts/cgroup-config.ts';
export { type EventRecorder, type EventSubject, noEvents } from './contracts/event-recorder.ts';
export type {
  PodChange,
  PodConfigListener,
  PodConfigReader,
  PodSink,
  PodSource,
  PodSourceName,
} from './contracts/pod-source.ts';
export {
  type ContainerUsage,
  type LogRequest,
  PodStateError,
  type PodStateReader,
  type PodUsage,
  type UsageStats,
} from './contracts/pod-state.ts';
export { type JoinClusterOptions, joinCluster } from './credentials/join-cluster.ts';
export type { NodeDisk, NodeUsage } from './eviction/node-usage.ts';
export { type CommandResult, type HostActions, systemHost } from './network/host-actions.ts';
export type { CloudProvider, CloudProviderContext, CloudProviders } from './node/cloud-provider.ts';
export { type Machine as NodeMachine, readMachine } from './node/machine.ts';
export { type ParsedOptions, parseOptions } from './options/parse-options.ts';
export { type HostFacts, type ResolvedConfig, resolveConfig } from './options/resolve-config.ts';
export { UsageError } from './options/usage-error.ts';
export { createSources, type Sources, type SourcesOptions } from './sources/create-sources.ts';
export { type Mounter, noMounter, systemMounter } from './volumes/mounter.ts';
