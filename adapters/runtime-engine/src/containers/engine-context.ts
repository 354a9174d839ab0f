import type { NetworkPlugin } from '@keelson/container-network';
import type { EventFeed } from '@keelson/container-runtime';
import type { Clock, Logger } from '@keelson/core/runtime';
import type { EngineHttp } from '../api/engine-http.ts';
import type { EngineLink } from '../api/engine-link.ts';
import type { LogKeeper } from '../logs/log-keeper.ts';
import type { StateRecords } from '../state/state-records.ts';
import type { LifeTracker } from './life-tracker.ts';

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

/** Options and services that the parts of the runtime share. */
export interface EngineContext {
  readonly http: EngineHttp;
  readonly link: EngineLink;
  readonly options: EngineRuntimeOptions;
  readonly owner: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly records: StateRecords;
  readonly logs: LogKeeper;
  readonly feed: EventFeed;
  readonly tracker: LifeTracker;
  /** A number that increases with every created sandbox and container, to order those of the same millisecond. */
  nextSequence(): number;
}
