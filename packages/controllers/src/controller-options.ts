import type { ApiClient } from '@keelson/core';
import type { Clock, Logger, Metrics } from '@keelson/core/runtime';

/** Dependencies of every controller. */
export interface ControllerOptions {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}
