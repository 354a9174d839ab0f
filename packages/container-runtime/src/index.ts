export type { CallOptions } from './call-options.ts';
export type { RuntimeCapabilities } from './capabilities.ts';
export {
  type Container,
  type ContainerConfig,
  type ContainerFilter,
  type ContainerId,
  type ContainerMetadata,
  type ContainerSecurityContext,
  type ContainerState,
  type ContainerStatus,
  type Device,
  ExitReason,
  type Mount,
  type SecurityProfile,
} from './container.ts';
export type {
  ContainerEngine,
  ContainerRuntime,
  RuntimeCondition,
  RuntimeStatus,
  RuntimeVersion,
  StopRequest,
} from './container-runtime.ts';
export {
  type Around,
  boundedCall,
  type DeadlineOptions,
  decorateEngine,
  type RuntimeCall,
  type RuntimeMetricsOptions,
  withDeadlines,
  withMetrics,
} from './decorators.ts';
export type { RuntimeEvent } from './event-feed.ts';
export { EventFeed } from './event-feed.ts';
export type {
  ExecRequest,
  ExecSyncRequest,
  ExecSyncResult,
  ProcessStreams,
  RuntimeStreaming,
  StreamRequest,
  TerminalSize,
} from './exec.ts';
export { matchesContainer, matchesSandbox } from './filters.ts';
export type { FilesystemUsage, Image, ImageAuth, ImageConfig, PullProgress, PullRequest } from './image.ts';
export { type ImageReference, normalizeImageReference, parseImageReference } from './image-reference.ts';
export type { ImageService } from './image-service.ts';
export {
  formatLogLine,
  type LogLine,
  type LogLineHead,
  maxLogHeadBytes,
  parseLogHead,
  parseLogLine,
} from './log-line.ts';
export type { NamespaceMode, NamespaceOptions } from './namespaces.ts';
export type { Bandwidth, NetworkAttachment, NetworkPlugin, NetworkRequest, NetworkStatus } from './network-plugin.ts';
export { findNodeIp } from './node-ip.ts';
export type { LinuxResources } from './resources.ts';
export {
  isRuntimeAdapter,
  parseRuntimeOptions,
  type RuntimeAdapter,
  type RuntimeContext,
  RuntimeOptionsError,
} from './runtime-adapter.ts';
export { isRuntimeError, RuntimeError, RuntimeErrorCode, toRuntimeError } from './runtime-error.ts';
export type {
  DnsConfig,
  PodSandbox,
  PodSandboxConfig,
  PodSandboxStatus,
  PortMapping,
  SandboxFilter,
  SandboxId,
  SandboxMetadata,
  SandboxSecurityContext,
  SandboxState,
} from './sandbox.ts';
export type { ContainerStats } from './stats.ts';
