import type { EventFeed } from '@keelson/container-runtime';
import type { Clock, Logger } from '@keelson/core';
import type { EngineHttp } from './api/engine-http.ts';
import type { Negotiated } from './api/negotiate.ts';
import type { LifeTracker } from './events/life-tracker.ts';
import type { LogKeeper } from './logs/log-keeper.ts';
import type { EngineRuntimeOptions } from './options.ts';
import type { StateRecords } from './state/state-records.ts';

/** What everything here works with. */
export interface Surroundings {
  readonly http: EngineHttp;
  readonly engine: Negotiated;
  readonly options: EngineRuntimeOptions;
  readonly owner: string;
  /** The engine wants names of systemd slices in place of paths of cgroups. */
  readonly systemdCgroups: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly records: StateRecords;
  readonly logs: LogKeeper;
  readonly feed: EventFeed;
  readonly tracker: LifeTracker;
  /** Rises with every sandbox and container made. */
  nextSequence(): number;
}

/** The parent of a pod's containers in the words of the engine. */
export function cgroupParentOf(around: Surroundings, path: string | undefined): string | undefined {
  if (path === undefined || !around.systemdCgroups) return path;
  return path.slice(path.lastIndexOf('/') + 1);
}
