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
export type { RuntimeEvent } from './events.ts';
export type {
  ExecRequest,
  ExecSyncRequest,
  ExecSyncResult,
  ProcessStreams,
  RuntimeStreaming,
  StreamRequest,
  TerminalSize,
} from './exec.ts';
export type { FilesystemUsage, Image, ImageAuth, ImageConfig, PullProgress, PullRequest } from './image.ts';
export type { ImageService } from './image-service.ts';
export type { NamespaceMode, NamespaceOptions } from './namespaces.ts';
export type { LinuxResources } from './resources.ts';
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
