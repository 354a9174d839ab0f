import type { ApiClient } from '@keelson/core';
import type { Clock, Logger, Metrics, Tracing } from '@keelson/core/runtime';

/** Dependencies of every controller. */
export interface ControllerOptions {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Records a span for each run of a controller. Default: none. */
  readonly tracing?: Tracing | undefined;
}
