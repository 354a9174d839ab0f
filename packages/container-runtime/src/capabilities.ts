/**
 * What a runtime can do on this machine. The agent rejects pods that require more, so a runtime must not declare what
 * it cannot do.
 */
export interface RuntimeCapabilities {
  /**
   * `image`: a root file system per container; `chroot`: image contents by chroot; `host`: only the machine's own
   * files.
   */
  readonly rootFilesystem: 'image' | 'chroot' | 'host';
  readonly podNetwork: boolean;
  readonly hostNetwork: boolean;
  /** Mounts appear in containers at the configured paths. */
  readonly mounts: boolean;
  readonly readonlyMounts: boolean;
  /** Mounts with `exact` are verified when they are created. */
  readonly exactMounts: boolean;
  /** Containers can run as a user other than that of the runtime. */
  readonly users: boolean;
  readonly memoryLimits: boolean;
  readonly cpuLimits: boolean;
  /** Resources of a running container can be changed. */
  readonly updateResources: boolean;
  readonly containerPid: boolean;
  readonly sharedPid: boolean;
  readonly privileged: boolean;
  readonly capabilitySets: boolean;
  readonly readonlyRootfs: boolean;
  readonly noNewPrivileges: boolean;
  readonly seccomp: boolean;
  readonly apparmor: boolean;
  readonly sysctls: boolean;
  readonly hostPorts: boolean;
  readonly devices: boolean;
  readonly tty: boolean;
  readonly exec: boolean;
  readonly attach: boolean;
  readonly portForward: boolean;
  readonly events: boolean;
  readonly stats: boolean;
  readonly logs: boolean;
  readonly pullProgress: boolean;
  /** Images other than built-in ones can be pulled. */
  readonly pull: boolean;
  /** Containers continue to run while the process of the runtime does not, and their exit codes are retained. */
  readonly survivesRestart: boolean;
}
