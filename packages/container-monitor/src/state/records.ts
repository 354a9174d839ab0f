import type { ContainerConfig, ContainerId, PodSandboxConfig, SandboxId } from '@keelson/container-runtime';

/** Immutable description of a sandbox, written at its creation. */
export interface SandboxRecord {
  readonly id: SandboxId;
  readonly createdAt: number;
  readonly config: PodSandboxConfig;
}

/** Immutable description of a container, written at its creation. Adapters add the data they need to start it. */
export interface ContainerRecord {
  readonly id: ContainerId;
  readonly sandboxId: SandboxId;
  readonly createdAt: number;
  readonly config: ContainerConfig;
  readonly imageId: string;
  /** Absolute path; the log keeper reads it too. */
  readonly logPath?: string;
}
