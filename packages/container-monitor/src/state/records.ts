import type { ContainerConfig, ContainerId, PodSandboxConfig, SandboxId } from '@keelson/container-runtime';

/** What is written when a sandbox is made; it never changes. */
export interface SandboxRecord {
  readonly id: SandboxId;
  readonly createdAt: number;
  readonly config: PodSandboxConfig;
}

/** What is written when a container is made; adapters add how it is started. */
export interface ContainerRecord {
  readonly id: ContainerId;
  readonly sandboxId: SandboxId;
  readonly createdAt: number;
  readonly config: ContainerConfig;
  readonly imageId: string;
  /** Absolute; read by the log keeper too. */
  readonly logPath?: string;
}
