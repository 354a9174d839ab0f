import type { NamespaceOptions } from './namespaces.ts';
import type { LinuxResources } from './resources.ts';
import type { SandboxId } from './sandbox.ts';

/** Id of a container, which the runtime assigns and never uses again. */
export type ContainerId = string;

/** Identifies a container within its sandbox. Containers that exist at the same time differ in at least one field. */
export interface ContainerMetadata {
  readonly name: string;
  /** Number of the instance of the container: 0 for the first one, higher after each restart. */
  readonly attempt: number;
}

/** A file or directory of the machine that is mounted in a container. */
export interface Mount {
  /** Absolute path in the container. */
  readonly containerPath: string;
  /** Absolute path of an existing file or directory on the machine. */
  readonly hostPath: string;
  readonly readonly?: boolean;
  /**
   * When true, `hostPath` contains no symbolic links, and the runtime must not start the container if `hostPath`
   * contains one by then. Set only for runtimes with the capability `exactMounts`.
   */
  readonly exact?: boolean;
  /** Whether later mounts on the machine appear in the container, and the reverse; default `private`: neither. */
  readonly propagation?: 'private' | 'hostToContainer' | 'bidirectional';
  readonly selinuxRelabel?: boolean;
}

/** A device of the machine that a container can access. */
export interface Device {
  readonly containerPath: string;
  readonly hostPath: string;
  /** Permitted operations: any of the letters `r` (read), `w` (write) and `m` (create the device node). */
  readonly permissions: string;
}

/** A profile of seccomp or AppArmor. */
export interface SecurityProfile {
  readonly type: 'runtimeDefault' | 'unconfined' | 'localhost';
  /** For the type `localhost`: absolute path of a seccomp profile, or name of a loaded AppArmor profile. */
  readonly localhostRef?: string;
}

/** Privileges, user and profiles of a container. */
export interface ContainerSecurityContext {
  readonly privileged?: boolean;
  /** User id. At most one of `runAsUser` and `runAsUsername` is present. */
  readonly runAsUser?: number;
  readonly runAsUsername?: string;
  readonly runAsGroup?: number;
  readonly supplementalGroups?: readonly number[];
  readonly readonlyRootfs?: boolean;
  readonly noNewPrivileges?: boolean;
  /** Names of Linux capabilities without the prefix `CAP_`; `ALL` stands for all capabilities. */
  readonly capabilities?: { readonly add?: readonly string[]; readonly drop?: readonly string[] };
  readonly namespaces?: NamespaceOptions;
  readonly seccomp?: SecurityProfile;
  readonly apparmor?: SecurityProfile;
  /**
   * `maskedPaths` are absolute paths that the container cannot read, `readonlyPaths` those that it cannot write. When
   * absent, the default paths of the runtime are protected. In privileged containers, and by runtimes without the
   * capability `mounts`, no paths are protected.
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
  /** Replaces the image's entry point; executed without a shell. */
  readonly command?: readonly string[];
  /** Replaces the image's arguments. When `command` is present, the image's arguments are not used in any case. */
  readonly args?: readonly string[];
  /** Absolute path of the working directory; default that of the image, else `/`. */
  readonly workingDir?: string;
  /** Environment variables in addition to those of the image. Of several with the same name, the last one is used. */
  readonly env?: readonly { readonly name: string; readonly value: string }[];
  readonly mounts?: readonly Mount[];
  readonly devices?: readonly Device[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Path of the log file, relative to the log directory of the sandbox; absent: output is discarded. */
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
 * State of a container.
 *
 * ```
 * created --start--> running --exit--> exited
 *    \______________ start failed _______^
 * ```
 * `unknown`: the runtime cannot determine the state; stop and remove still work.
 */
export type ContainerState = 'created' | 'running' | 'exited' | 'unknown';

/** An item of a list of containers. */
export interface Container {
  readonly id: ContainerId;
  readonly sandboxId: SandboxId;
  readonly metadata: ContainerMetadata;
  /** Image reference of the configuration, unchanged. */
  readonly image: string;
  /** Id of the image from which the container was created. */
  readonly imageId: string;
  readonly state: ContainerState;
  /** Time of the creation in epoch milliseconds. */
  readonly createdAt: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** Reasons for the exit of a container, which become part of the pod status. Runtimes may report other reasons. */
export const ExitReason = {
  /** The container exited with exit code 0. */
  Completed: 'Completed',
  /** The container exited with an exit code other than 0, and no other reason applies. */
  Error: 'Error',
  /** The kernel killed the container or one of its processes because of the memory limit. */
  OutOfMemory: 'OOMKilled',
  /** The container's process could not be started; the exit code is 128 or a more precise one of the runtime. */
  StartError: 'StartError',
  /** The exit code was not recorded, for example because of a crash of the machine; 137 is reported instead. */
  Lost: 'ContainerStatusUnknown',
} as const;

/** The complete state of a container. */
export interface ContainerStatus extends Container {
  /** Time of the start in epoch milliseconds; absent for a container that was never started. */
  readonly startedAt?: number;
  /** Time of the exit in epoch milliseconds; present exactly when the container is `exited`. */
  readonly finishedAt?: number;
  /** Present exactly when the container is `exited`; 128 + signal number for a process that a signal ended. */
  readonly exitCode?: number;
  /** Name of the signal that ended the container's process; absent when it exited by itself. */
  readonly signal?: string;
  /** Reason for the exit: one of {@link ExitReason}, or another one of the runtime. */
  readonly reason?: string;
  readonly message?: string;
  readonly mounts: readonly Mount[];
  /** Absolute path of the log file. */
  readonly logPath?: string;
  readonly resources: LinuxResources;
  /**
   * Process ID of the container's first process on the machine, while it runs and where the runtime can determine it.
   */
  readonly pid?: number;
}

/** Conditions that selected containers meet; an absent field is no condition. */
export interface ContainerFilter {
  readonly id?: ContainerId;
  readonly state?: ContainerState;
  readonly sandboxId?: SandboxId;
  /** Selects containers that have all of these labels with equal values. */
  readonly labels?: Readonly<Record<string, string>>;
}
