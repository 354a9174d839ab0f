import type { ApiClient, Clock, Logger, Metrics } from '@keelson/core';

/** What every controller needs: the API as a client, and time. */
export interface ControllerOptions {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}
