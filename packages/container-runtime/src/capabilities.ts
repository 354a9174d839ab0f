/**
 * What a runtime can do on this machine. The agent rejects pods that require more, so a runtime must not declare what
 * it cannot do.
 */
export interface RuntimeCapabilities {
  /**
   * Root file system of containers. `image`: a separate one for each container, with the content of its image;
   * `chroot`: the content of the image, entered by chroot; `host`: the root file system of the machine.
   */
  readonly rootFilesystem: 'image' | 'chroot' | 'host';
  readonly podNetwork: boolean;
  readonly hostNetwork: boolean;
  /** Whether mounts appear in containers at the configured paths. */
  readonly mounts: boolean;
  readonly readonlyMounts: boolean;
  /** Whether the runtime supports mounts with `exact`, whose source must not contain symbolic links. */
  readonly exactMounts: boolean;
  /** Whether containers can run as a user other than that of the runtime. */
  readonly users: boolean;
  readonly memoryLimits: boolean;
  readonly cpuLimits: boolean;
  /** Whether the resources of a running container can be changed. */
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
  /** Whether images other than built-in ones can be pulled. */
  readonly pull: boolean;
  /** Whether containers continue to run when the process of the runtime ends, and their exit codes are retained. */
  readonly survivesRestart: boolean;
}
