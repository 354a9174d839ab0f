export type { KeyPair as ServingPair } from '@keelson/certificates';
export { UsageError } from '@keelson/core/internal';
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
} from './base/config/agent-config.ts';
export { type AgentPeriods, defaultPeriods } from './base/config/agent-periods.ts';
export type { CgroupConfig, EnforcedShare } from './base/config/cgroup-config.ts';
export {
  type ContainerUsage,
  type LogRequest,
  type PodQueries,
  PodQueryError,
  type PodUsage,
  type UsageStats,
} from './base/contracts/pod-queries.ts';
export type {
  PodChange,
  PodConfigListener,
  PodConfigReader,
  PodSink,
  PodSource,
  PodSourceName,
} from './base/contracts/pod-source.ts';
export { type EventRecorder, type EventSubject, noEvents } from './base/events/event-recorder.ts';
export { MachineError } from './base/machine-error.ts';
export { agentVersion, versionText } from './base/version.ts';
export type { CgroupAccess } from './machine/cgroups/node-cgroups.ts';
export { type OpenCgroupsOptions, openCgroups } from './machine/cgroups/open-cgroups.ts';
export { type ProcessTable, processTable } from './machine/cgroups/process-placement.ts';
export { type Machine as NodeMachine, readMachine } from './machine/host/machine.ts';
export { type CommandResult, type HostActions, systemHost } from './machine/network/host-actions.ts';
export { type OpenNetworkOptions, openNetwork } from './machine/network/pod-network.ts';
export type { NodeDisk, NodeUsage } from './machine/stats/node-usage.ts';
export { type Mounter, noMounter, systemMounter } from './machine/volumes/mounter.ts';
export type { CloudProvider, CloudProviderContext, CloudProviders } from './node/cloud-provider.ts';
export { createSelfSigned } from './serve/serving-certificate.ts';
export { createSources, type Sources, type SourcesOptions } from './sources/create-sources.ts';
export { createAgent } from './startup/agent.ts';
export type { Agent, AgentDependencies } from './startup/agent-dependencies.ts';
export { type AgentClients, type ClientSourceOptions, createAgentClients } from './startup/api/client-source.ts';
export { checkSwap } from './startup/check-swap.ts';
export { type JoinClusterOptions, joinCluster } from './startup/credentials/join-cluster.ts';
export { bootConfig, type DynamicConfig } from './startup/dynamic/boot-config.ts';
export { effectiveOptions } from './startup/effective-options.ts';
export { helpText } from './startup/options/help.ts';
export { type ParsedOptions, parseOptions } from './startup/options/parse-options.ts';
export { type HostFacts, type ResolvedConfig, resolveConfig } from './startup/options/resolve-config.ts';
export { type PreparedProcess, prepareProcess } from './startup/process/prepare-process.ts';
export { type RunAgentOptions, type RunningAgent, runAgent } from './startup/run-agent.ts';
