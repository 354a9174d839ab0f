// Entry point for runtime adapters and their callers: the contract of a runtime, and helpers that implement parts of
// it.

/** @public */
export type { CallOptions } from './call-options.ts';
/** @public */
export type { RuntimeCapabilities } from './capabilities.ts';
/** @public */
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
/** @public */
export type {
  ContainerEngine,
  ContainerRuntime,
  RuntimeCondition,
  RuntimeStatus,
  RuntimeVersion,
  StopRequest,
} from './container-runtime.ts';
/** @public */
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
/** @public */
export type { RuntimeEvent } from './event-feed.ts';
/** @public */
export { EventFeed } from './event-feed.ts';
/** @public */
export type {
  ExecRequest,
  ExecSyncRequest,
  ExecSyncResult,
  ProcessStreams,
  RuntimeStreaming,
  StreamRequest,
  TerminalSize,
} from './exec.ts';
/** @public */
export { matchesContainer, matchesSandbox } from './filters.ts';
/** @public */
export type { FilesystemUsage, Image, ImageAuth, ImageConfig, PullProgress, PullRequest } from './image.ts';
/** @public */
export { type ImageReference, normalizeImageReference, parseImageReference } from './image-reference.ts';
/** @public */
export type { ImageService } from './image-service.ts';
/** @public */
export {
  formatLogLine,
  type LogLine,
  type LogLineHead,
  maxLogHeadBytes,
  parseLogHead,
  parseLogLine,
} from './log-line.ts';
/** @public */
export type { NamespaceMode, NamespaceOptions } from './namespaces.ts';
/** @public */
export type { Bandwidth, NetworkAttachment, NetworkPlugin, NetworkRequest, NetworkStatus } from './network-plugin.ts';
/** @public */
export { findNodeIp } from './node-ip.ts';
/** @public */
export type { LinuxResources } from './resources.ts';
/** @public */
export {
  isRuntimeAdapter,
  parseRuntimeOptions,
  type RuntimeAdapter,
  type RuntimeContext,
  RuntimeOptionsError,
} from './runtime-adapter.ts';
/** @public */
export { isRuntimeError, RuntimeError, RuntimeErrorCode, toRuntimeError } from './runtime-error.ts';
/** @public */
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
/** @public */
export type { ContainerStats } from './stats.ts';
