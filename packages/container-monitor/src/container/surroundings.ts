import type { EventFeed } from '@keelson/container-runtime';
import type { Clock } from '@keelson/core';
import type { KeeperClient } from '../logs/keeper-client.ts';
import type { RunFiles } from '../state/run-files.ts';
import type { StateDirectory } from '../state/state-directory.ts';
import type { MonitoredContainer } from './monitored-container.ts';

/** What containers of one runtime share. */
export interface ContainerSurroundings {
  readonly state: StateDirectory;
  readonly runFiles: RunFiles;
  readonly keeper: KeeperClient;
  readonly events: EventFeed;
  readonly clock: Clock;
  /** Refreshes the container after so many milliseconds. */
  later(container: MonitoredContainer, ms: number): void;
}
