/** The fields of the engine's responses that this adapter reads. Lists and maps may be null. */

export interface EngineInfo {
  readonly DockerRootDir: string;
  readonly CgroupDriver?: string;
  readonly MemoryLimit?: boolean;
  readonly CpuCfsQuota?: boolean;
  readonly SecurityOptions?: readonly string[] | null;
}

export interface ContainerEntry {
  readonly Id: string;
  readonly ImageID: string;
  readonly State: string;
  readonly Labels: Readonly<Record<string, string>> | null;
}

export interface ContainerDetails {
  readonly Id: string;
  readonly Image: string;
  readonly LogPath?: string;
  readonly ResolvConfPath?: string;
  readonly State: {
    readonly Status: string;
    readonly OOMKilled: boolean;
    readonly Pid: number;
    readonly ExitCode: number;
    readonly Error?: string;
    readonly StartedAt: string;
    readonly FinishedAt: string;
  };
  readonly Config: { readonly StopSignal?: string; readonly Labels: Readonly<Record<string, string>> | null };
  readonly NetworkSettings?: {
    readonly IPAddress?: string;
    readonly GlobalIPv6Address?: string;
    readonly Networks?: Readonly<
      Record<string, { readonly IPAddress?: string; readonly GlobalIPv6Address?: string }>
    > | null;
  };
}

export interface ExecDetails {
  readonly Running: boolean;
  readonly ExitCode: number | null;
  /** Process id in the PID namespace of the machine; 0 when the command does not run. */
  readonly Pid: number;
}

export interface ImageEntry {
  readonly Id: string;
  readonly RepoTags: readonly string[] | null;
  readonly RepoDigests: readonly string[] | null;
  readonly Size: number;
}

export interface ImageDetails extends ImageEntry {
  readonly Config: {
    readonly User?: string;
    readonly Env?: readonly string[] | null;
    readonly Entrypoint?: readonly string[] | null;
    readonly Cmd?: readonly string[] | null;
    readonly WorkingDir?: string;
    readonly StopSignal?: string;
    readonly Labels?: Readonly<Record<string, string>> | null;
    readonly Volumes?: Readonly<Record<string, unknown>> | null;
  } | null;
}

export interface EngineEvent {
  readonly Action: string;
  readonly Actor: { readonly ID: string; readonly Attributes?: Readonly<Record<string, string>> | null };
}
