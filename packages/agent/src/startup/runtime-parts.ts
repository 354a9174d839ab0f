import { RuntimeHealth } from '../runtime-view/runtime-health.ts';
import { RuntimePods } from '../runtime-view/runtime-pods.ts';
import { RuntimeVersionCache } from '../runtime-view/runtime-version-cache.ts';
import type { AgentContext } from './agent-context.ts';

/** The parts that observe the container runtime. */
export interface RuntimeParts {
  readonly version: RuntimeVersionCache;
  readonly health: RuntimeHealth;
  /** The pods that the runtime reports. */
  readonly states: RuntimePods;
}

export function createRuntimeParts({
  runtime,
  clock,
  logger,
  callTimeoutMs,
  periods,
  changes,
}: AgentContext): RuntimeParts {
  const version = new RuntimeVersionCache(runtime, clock, callTimeoutMs);
  const health = new RuntimeHealth({
    ...{ runtime, clock, logger, callTimeoutMs },
    periodMs: periods.runtimeStatus,
    downAfterMs: periods.runtimeDown,
    onChange: () => changes.runtime.notify(),
  });
  const states = new RuntimePods({
    ...{ runtime, clock, logger, callTimeoutMs },
    onChange: (uid) => changes.pod.notify(uid),
  });
  return { version, health, states };
}
