/**
 * What a runtime can do on this machine. Admission refuses pods by it, so a runtime may not promise more than it keeps.
 */
export interface RuntimeCapabilities {
  /**
   * `image`: a root file system per container; `chroot`: image contents by chroot; `host`: only the machine's own
   * files.
   */
  readonly rootFilesystem: 'image' | 'chroot' | 'host';
  readonly podNetwork: boolean;
  readonly hostNetwork: boolean;
  /** Containers see their mounts at the paths asked for. */
  readonly mounts: boolean;
  readonly readonlyMounts: boolean;
  /** Mounts with `exact` are checked as they are made. */
  readonly exactMounts: boolean;
  /** Another user than that of the runtime. */
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
  /** Containers run on while the runtime's own process is away, and their exit codes are not lost. */
  readonly survivesRestart: boolean;
}
