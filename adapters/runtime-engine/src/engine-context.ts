import type { EventFeed } from '@keelson/container-runtime';
import type { Clock, Logger } from '@keelson/core/runtime';
import type { EngineHttp } from './api/engine-http.ts';
import type { EngineLink } from './api/engine-link.ts';
import type { LifeTracker } from './events/life-tracker.ts';
import type { LogKeeper } from './logs/log-keeper.ts';
import type { EngineRuntimeOptions } from './options.ts';
import type { StateRecords } from './state/state-records.ts';

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
  /** Increases with every created sandbox and container. */
  nextSequence(): number;
}
