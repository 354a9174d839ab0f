import { type Clock, type Metrics, systemClock } from '@keelson/core/runtime';
import type { ContainerEngine } from './container-runtime.ts';
import { decorateEngine } from './decorate-engine.ts';
import { toRuntimeError } from './runtime-error.ts';

export interface RuntimeMetricsOptions {
  readonly metrics: Metrics;
  readonly clock?: Clock;
}

/** Measures the duration of every call and counts failures by their code. */
export function withMetrics(engine: ContainerEngine, options: RuntimeMetricsOptions): ContainerEngine {
  const { metrics, clock = systemClock } = options;
  const runtime = engine.runtime.name;
  const duration = metrics.histogram({
    name: 'keelson_runtime_call_duration_seconds',
    help: 'Duration of calls to the container runtime, including failed calls',
    labels: ['runtime', 'call'],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60],
  });
  const failures = metrics.counter({
    name: 'keelson_runtime_call_failures_total',
    help: 'Calls to the container runtime that failed, by error code',
    labels: ['runtime', 'call', 'code'],
  });
  return decorateEngine(engine, async (call, given, run) => {
    const begin = clock.monotonic();
    try {
      return await run(given);
    } catch (error) {
      failures.add(1, { runtime, call, code: toRuntimeError(error).code });
      throw error;
    } finally {
      duration.observe((clock.monotonic() - begin) / 1000, { runtime, call });
    }
  });
}
