export type {
  AgentConfig,
  AllowedSources,
  ApiAccessConfig,
  DnsConfig,
  ImageConfig,
  NetworkConfig,
  NodeConfig,
  PodLimits,
  ResourceAmounts,
  RuntimeChoice,
  ServerConfig,
  SourceConfig,
} from './contracts/agent-config.ts';
export type { PodChange, PodConfigListener, PodConfigReader, PodSink, PodSource, PodSourceName } from './contracts/pod-source.ts';
export {
  type ContainerUsage,
  type LogRequest,
  PodStateError,
  type PodStateReader,
  type PodUsage,
  type UsageStats,
} from './contracts/pod-state.ts';
