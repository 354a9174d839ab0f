import { type Clock, systemClock } from '@keelson/core/runtime';
import { boundedCall } from './bounded-call.ts';
import type { ContainerEngine } from './container-runtime.ts';
import { decorateEngine, type RuntimeCall } from './decorate-engine.ts';

/** Calls whose duration depends on the request rather than on the runtime: they have no default deadline. */
const unbounded: ReadonlySet<RuntimeCall> = new Set([
  'pullImage',
  'execSync',
  'exec',
  'attach',
  'portForward',
  'stopContainer',
]);

export interface DeadlineOptions {
  readonly clock?: Clock;
  /** Deadline of calls without `timeoutMs`, except calls that may take long; absent: no deadline. */
  readonly defaultTimeoutMs?: number;
}

/**
 * Ends every call at its deadline and when its signal is aborted, also when the runtime ignores both. The agent sets
 * `defaultTimeoutMs` to `--runtime-request-timeout`; it does not apply to pulls, exec, attach, port-forward and
 * graceful stops.
 */
export function withDeadlines(engine: ContainerEngine, options: DeadlineOptions = {}): ContainerEngine {
  const { clock = systemClock, defaultTimeoutMs } = options;
  return decorateEngine(engine, (call, given, run) => {
    const usesDefault = given.timeoutMs === undefined && defaultTimeoutMs !== undefined && !unbounded.has(call);
    return boundedCall(clock, call, usesDefault ? { ...given, timeoutMs: defaultTimeoutMs } : given, run);
  });
}
