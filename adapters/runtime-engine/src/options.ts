import type { NetworkPlugin } from '@keelson/container-network';
import type { Clock, Logger } from '@keelson/core';

export interface EngineRuntimeOptions {
  /**
   * `unix:///PATH` of the engine's API socket. The engine runs on this machine: log files, cgroups and processes are
   * looked at directly.
   */
  readonly endpoint: string;
  /** Reference of the image of sandboxes; its own command must wait until it is killed. Pulled when it is not there. */
  readonly infraImage: string;
  /** Containers whose configuration names no namespaces share the processes of their pod; default false. */
  readonly sharedPid?: boolean;
  /**
   * Tells the containers of this user of the engine from those of others; default `default`. Letters, digits, `.`, `_`
   * and `-`.
   */
  readonly owner?: string;
  /**
   * Folder for what the engine cannot keep: positions in logs, failed starts. Default
   * `/var/lib/keelson/runtime-engine/OWNER`.
   */
  readonly stateDirectory?: string;
  /** Gives sandboxes their network in place of the engine. */
  readonly network?: NetworkPlugin;
  /**
   * Address of pods that have the network of the machine; absent: that of the first interface that is not loopback,
   * else 127.0.0.1.
   */
  readonly nodeIp?: string;
  /** Where the cgroup hierarchies are mounted; default `/sys/fs/cgroup`. */
  readonly cgroupMountpoint?: string;
  readonly clock?: Clock;
  readonly logger?: Logger;
}
