import type { NamespaceOptions } from './namespaces.ts';
import type { LinuxResources } from './resources.ts';
import type { SandboxId } from './sandbox.ts';

/** Name of a container, chosen by the runtime; never reused. */
export type ContainerId = string;

/** Which container of its sandbox. Two containers of a sandbox that exist at once differ in at least one field. */
export interface ContainerMetadata {
  readonly name: string;
  /** Counts the instances of one container, from 0. */
  readonly attempt: number;
}

/** A file or directory of the machine in a container. */
export interface Mount {
  /** Absolute path in the container. */
  readonly containerPath: string;
  /** Absolute path on the machine; it exists. */
  readonly hostPath: string;
  readonly readonly?: boolean;
  /**
   * `hostPath` has no symbolic links, and the runtime fails the start of the container if one has taken a place in it
   * since. Given only to runtimes with the capability `exactMounts`.
   */
  readonly exact?: boolean;
  /** Whether mounts made later on one side appear on the other; default `private`. */
  readonly propagation?: 'private' | 'hostToContainer' | 'bidirectional';
  readonly selinuxRelabel?: boolean;
}

/** A device of the machine in a container. */
export interface Device {
  readonly containerPath: string;
  readonly hostPath: string;
  /** Letters of `rwm`. */
  readonly permissions: string;
}

/** A profile of seccomp or AppArmor. */
export interface SecurityProfile {
  readonly type: 'runtimeDefault' | 'unconfined' | 'localhost';
  /** Absolute path (seccomp) or name of a loaded profile (AppArmor); for `localhost`. */
  readonly localhostRef?: string;
}

/** Privileges, user and profiles of a container. */
export interface ContainerSecurityContext {
  readonly privileged?: boolean;
  /** Numeric user; at most one of this and `runAsUsername`. */
  readonly runAsUser?: number;
  readonly runAsUsername?: string;
  readonly runAsGroup?: number;
  readonly supplementalGroups?: readonly number[];
  readonly readonlyRootfs?: boolean;
  readonly noNewPrivileges?: boolean;
  /** Names without the `CAP_` prefix; `ALL` means every one. */
  readonly capabilities?: { readonly add?: readonly string[]; readonly drop?: readonly string[] };
  readonly namespaces?: NamespaceOptions;
  readonly seccomp?: SecurityProfile;
  readonly apparmor?: SecurityProfile;
  /**
   * Absolute paths that the container cannot read, and that it cannot write; absent: those that the runtime protects by
   * itself. Privileged containers have none, and runtimes without mounts (see the capabilities) protect none.
   */
  readonly maskedPaths?: readonly string[];
  readonly readonlyPaths?: readonly string[];
  readonly selinux?: {
    readonly user?: string;
    readonly role?: string;
    readonly type?: string;
    readonly level?: string;
  };
}

/** The configuration of a new container. It does not change afterwards, except for its resources. */
export interface ContainerConfig {
  readonly metadata: ContainerMetadata;
  /** Reference or ID of an image in the image store. */
  readonly image: string;
  /** Replaces the image's entry point; no shell. */
  readonly command?: readonly string[];
  /** Replaces the image's arguments; when `command` is given, the image's arguments are not used either. */
  readonly args?: readonly string[];
  /** Absolute; default that of the image, else `/`. */
  readonly workingDir?: string;
  /** In order; a later entry of the same name wins. Added to the image's. */
  readonly env?: readonly { readonly name: string; readonly value: string }[];
  readonly mounts?: readonly Mount[];
  readonly devices?: readonly Device[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Relative to the sandbox's log directory; absent: output is discarded. */
  readonly logPath?: string;
  /** Keeps standard input open for attach; otherwise the process reads end of file at once. */
  readonly stdin?: boolean;
  /** Closes standard input when the first attach that wrote to it ends. */
  readonly stdinOnce?: boolean;
  readonly tty?: boolean;
  /** Name or number of the signal of a graceful stop; default that of the image, else `SIGTERM`. */
  readonly stopSignal?: string;
  readonly resources?: LinuxResources;
  readonly securityContext?: ContainerSecurityContext;
}

/**
 * ```
 * created --start--> running --exit--> exited
 *    \______________ start failed _______^
 * ```
 * `unknown`: the runtime cannot determine the state; stop and remove still work.
 */
export type ContainerState = 'created' | 'running' | 'exited' | 'unknown';

/** A container as lists show it. */
export interface Container {
  readonly id: ContainerId;
  readonly sandboxId: SandboxId;
  readonly metadata: ContainerMetadata;
  /** As in the configuration. */
  readonly image: string;
  /** Id of the image that it was created from. */
  readonly imageId: string;
  readonly state: ContainerState;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** Why a container ended, as the pod status shows it. Runtimes may report other reasons. */
export const ExitReason = {
  /** Exit code 0. */
  Completed: 'Completed',
  /** Any other exit code. */
  Error: 'Error',
  /** The kernel killed the container or one of its processes because of the memory limit. */
  OutOfMemory: 'OOMKilled',
  /** Its process could not be started; exit code 128 or a more precise one of the runtime. */
  StartError: 'StartError',
  /** It ended while its exit code could not be recorded, for example by a crash of the machine; exit code 137. */
  Lost: 'ContainerStatusUnknown',
} as const;

/** The complete state of a container. */
export interface ContainerStatus extends Container {
  /** Epoch milliseconds; absent until it was started. */
  readonly startedAt?: number;
  /** Epoch milliseconds; present exactly when `exited`. */
  readonly finishedAt?: number;
  /** Present exactly when `exited`; 128 + number for a process that a signal ended. */
  readonly exitCode?: number;
  /** Name of the signal that ended it. */
  readonly signal?: string;
  /** See {@link ExitReason}. */
  readonly reason?: string;
  readonly message?: string;
  readonly mounts: readonly Mount[];
  /** Absolute. */
  readonly logPath?: string;
  readonly resources: LinuxResources;
  /**
   * Process ID of the container's first process on the machine, while it runs and where the runtime can determine it.
   */
  readonly pid?: number;
}

/** Which containers; absent fields select all. */
export interface ContainerFilter {
  readonly id?: ContainerId;
  readonly state?: ContainerState;
  readonly sandboxId?: SandboxId;
  /** All of these labels with exactly these values. */
  readonly labels?: Readonly<Record<string, string>>;
}
