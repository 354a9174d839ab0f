import type { ApiClient, Clock, Logger, Metrics } from '@keelson/core';

/** Dependencies of every controller. */
export interface ControllerOptions {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}
