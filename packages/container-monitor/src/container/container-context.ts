import { EventFeed } from '@keelson/container-runtime';
import type { Clock, Logger } from '@keelson/core/runtime';
import { KeeperClient } from '../logs/keeper-client.ts';
import { RunFiles, type StateDirectory } from '../state/state-directory.ts';
import type { MonitoredContainer } from './monitored-container.ts';

/** Services that the containers of one runtime share. */
export interface ContainerContext {
  readonly state: StateDirectory;
  readonly runFiles: RunFiles;
  readonly keeper: KeeperClient;
  readonly events: EventFeed;
  readonly clock: Clock;
  /** Refreshes the container after `ms` milliseconds. */
  later(container: MonitoredContainer, ms: number): void;
}

export interface ContainerContextParts {
  readonly state: StateDirectory;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called when the connection to the log keeper was lost. */
  readonly onKeeperLost: () => void;
}

/** Creates the context of the containers in a state directory. */
export function createContainerContext({
  state,
  clock,
  logger,
  onKeeperLost,
}: ContainerContextParts): ContainerContext {
  return {
    state,
    runFiles: new RunFiles(state.run),
    keeper: new KeeperClient(state, onKeeperLost),
    clock,
    events: new EventFeed(() => clock.now()),
    later: (container, ms) => {
      const failed = (error: unknown) => logger.error('failed to read the state of a container', { err: error });
      clock.after(ms, () => void container.refresh().catch(failed));
    },
  };
}
