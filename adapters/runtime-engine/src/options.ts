import type { NetworkPlugin } from '@keelson/container-network';
import type { Clock, Logger } from '@keelson/core/runtime';

export interface EngineRuntimeOptions {
  /**
   * `unix:///PATH` of the engine's API socket. The engine must run on this machine, because its log files, cgroups and
   * processes are read directly.
   */
  readonly endpoint: string;
  /** Reference of the sandbox image; its command must wait until it is killed. Pulled when the engine lacks it. */
  readonly infraImage: string;
  /** Containers without configured namespaces share the PID namespace of their pod; default false. */
  readonly sharedPid?: boolean;
  /**
   * Label value that distinguishes the containers of this runtime from others at the engine; default `default`. It
   * consists of letters, digits, `.`, `_` and `-`.
   */
  readonly owner?: string;
  /**
   * Folder for data that the engine cannot store: log positions and failed starts. Default
   * `/var/lib/keelson/runtime-engine/OWNER`.
   */
  readonly stateDirectory?: string;
  /** Connects sandboxes to the network; absent: the engine connects them to its bridge. */
  readonly network?: NetworkPlugin;
  /**
   * Address of pods that use the network of the machine; absent: the address of the first interface that is not
   * loopback, else 127.0.0.1.
   */
  readonly nodeIp?: string;
  /** Mount point of the cgroup hierarchies; default `/sys/fs/cgroup`. */
  readonly cgroupMountpoint?: string;
  readonly clock?: Clock;
  readonly logger?: Logger;
}
