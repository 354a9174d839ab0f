import { type Clock, systemClock } from '@keelson/core';
import { boundedCall } from './bounded-call.ts';
import type { ContainerEngine } from './container-runtime.ts';
import { decorateEngine, type RuntimeCall } from './decorate-engine.ts';

/** Calls whose duration is the caller's business, not the runtime's: they have no default deadline. */
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
  /** For calls without `timeoutMs`, except those that may rightly take long; absent: no deadline. */
  readonly defaultTimeoutMs?: number;
}

/**
 * Makes every call end by its deadline and with its signal, whatever the runtime does. `defaultTimeoutMs` is what
 * `--runtime-request-timeout` sets; pulls, exec, attach, port-forward and graceful stops are free of it.
 */
export function withDeadlines(engine: ContainerEngine, options: DeadlineOptions = {}): ContainerEngine {
  const { clock = systemClock, defaultTimeoutMs } = options;
  return decorateEngine(engine, (call, given, run) => {
    const usesDefault = given.timeoutMs === undefined && defaultTimeoutMs !== undefined && !unbounded.has(call);
    return boundedCall(clock, call, usesDefault ? { ...given, timeoutMs: defaultTimeoutMs } : given, run);
  });
}
