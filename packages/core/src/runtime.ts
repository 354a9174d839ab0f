// Entry point for code that runs inside a control plane or an agent: services, clock, logger, metrics and their tokens.

/** @public */
export { addAbortListener, removeAbortListener } from './meta/abort-listeners.ts';
/** @public */
export { type Clock, pause, systemClock } from './runtime/clock.ts';
/** @public */
export { FakeClock } from './runtime/fake-clock.ts';
/** @public */
export { guardedLogger, type LogLineLevel, type LogSink } from './runtime/guarded-logger.ts';
/** @public */
export { type LogFields, type Logger, silentLogger } from './runtime/logger.ts';
/** @public */
export {
  type Counter,
  type Gauge,
  type Histogram,
  type Labels,
  type MetricOptions,
  type Metrics,
  noMetrics,
} from './runtime/metrics.ts';
/** @public */
export { makePrivateDirectory, tightenMode } from './runtime/private-path.ts';
/** @public */
export { type Service, ServiceHost } from './runtime/service-host.ts';
/** @public */
export {
  type Bind,
  type BindingModule,
  ClockToken,
  LoggerToken,
  MetricsToken,
  type Token,
  token,
} from './runtime/tokens.ts';
/** @experimental */
export type { ActiveSpan, SpanAttributes, SpanOptions, Tracing } from './runtime/tracing.ts';
/** @public */
export { eventLoopTurns, TurnQueue } from './runtime/turn-queue.ts';
/** @experimental */
export { declineUpgradesWithBody } from './runtime/upgrades.ts';
