import type { ContainerRuntime, ContainerStatus } from '@keelson/container-runtime';
import type { Clock, Logger } from '@keelson/core/runtime';
import type { Pod } from '@keelson/kinds';
import type { PodEvents } from '../../base/events/event-recorder.ts';
import { initContainersOf, isSidecar, namedContainersOf } from '../../base/pod/pod-spec.ts';
import { withDeadline } from '../../base/with-deadline.ts';
import { containerNotesOf, mayRun, type PodRuntimeState } from '../../runtime-view/runtime-objects.ts';
import { runHook } from './hook-runner.ts';

/** The least time between SIGTERM and SIGKILL, unless the grace period of the request is 0. */
const leastGraceMs = 2_000;
const defaultGraceSeconds = 2;

export interface ContainerKillerOptions {
  readonly runtime: ContainerRuntime;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly events: PodEvents;
  readonly callTimeoutMs: number;
}

export interface KillRequest {
  /** Undefined for a pod that no source has; the labels of the container are used instead. */
  readonly pod: Pod | undefined;
  readonly status: ContainerStatus;
  readonly message: string;
  /** Overrides the grace period of the pod. */
  readonly graceSeconds?: number | undefined;
  readonly podIp: string | undefined;
}

/**
 * Stops containers gracefully: hook, stop signal and SIGKILL within one grace period. See
 * docs/reference/agent-rules.md#grace-period-of-a-container.
 */
export class ContainerKiller {
  readonly #options: ContainerKillerOptions;

  constructor(options: ContainerKillerOptions) {
    this.#options = options;
  }

  /** Resolves when the container has ended. */
  async kill(request: KillRequest, signal: AbortSignal): Promise<void> {
    const { runtime, clock, events, callTimeoutMs } = this.#options;
    const { pod, status } = request;
    const graceMs = graceSecondsOf(request) * 1000;
    if (pod) events.record(pod, 'Normal', 'Killing', request.message, status.metadata.name);
    const begunMs = clock.monotonic();
    if (graceMs > 0 && status.state === 'running') await this.#preStop(request, graceMs, signal);
    const left = graceMs === 0 ? 0 : Math.max(leastGraceMs, graceMs - (clock.monotonic() - begunMs));
    await runtime.stopContainer(status.id, { gracePeriodMs: left }, { signal, timeoutMs: left + callTimeoutMs });
  }

  async #preStop({ pod, status, podIp }: KillRequest, graceMs: number, signal: AbortSignal): Promise<void> {
    const { runtime, clock, logger, events } = this.#options;
    const container = pod && namedContainersOf(pod).find(({ name }) => name === status.metadata.name);
    const handler = container?.lifecycle?.preStop ?? containerNotesOf(status.annotations).preStop;
    if (!handler) return;
    const target = { containerId: status.id, container, podIp };
    try {
      await withDeadline(clock, graceMs, signal, (within) => runHook(handler, target, runtime, clock, within));
    } catch (err) {
      if (signal.aborted) throw err;
      logger.warn('preStop hook failed', { component: 'agent', container: status.metadata.name, err });
      const text = err instanceof Error ? err.message : String(err);
      if (pod) events.record(pod, 'Warning', 'FailedPreStopHook', `PreStopHook failed: ${text}`, status.metadata.name);
    }
  }
}

function graceSecondsOf({ pod, status, graceSeconds }: KillRequest): number {
  const own = pod?.metadata?.deletionGracePeriodSeconds ?? pod?.spec.terminationGracePeriodSeconds;
  const seconds = graceSeconds ?? own ?? containerNotesOf(status.annotations).graceSeconds ?? defaultGraceSeconds;
  return Math.max(0, Number(seconds));
}

export interface EndingTools {
  readonly runtime: ContainerRuntime;
  readonly killer: ContainerKiller;
  readonly callTimeoutMs: number;
}

/**
 * Ends the running containers of a pod in parallel, its sidecars afterwards, then its sandboxes. All are attempted; the
 * first failure is thrown afterwards.
 */
export async function endPodProcesses(
  pod: Pod | undefined,
  state: PodRuntimeState,
  message: string,
  graceSeconds: number | undefined,
  { runtime, killer, callTimeoutMs }: EndingTools,
  signal: AbortSignal,
): Promise<void> {
  const sidecars = new Set(
    pod
      ? initContainersOf(pod)
          .filter(isSidecar)
          .map(({ name }) => name)
      : [],
  );
  const podIp = state.sandboxes[0]?.ips[0];
  const failures: unknown[] = [];
  const kill = async (statuses: readonly ContainerStatus[]) => {
    const ends = statuses.map((status) =>
      killer.kill({ pod, status, message: textFor(status, message), graceSeconds, podIp }, signal),
    );
    for (const end of await Promise.allSettled(ends)) if (end.status === 'rejected') failures.push(end.reason);
  };
  const running = state.containers.filter(mayRun);
  await kill(running.filter(({ metadata }) => !sidecars.has(metadata.name)));
  await kill(running.filter(({ metadata }) => sidecars.has(metadata.name)));
  if (failures.length > 0) throw failures[0];
  for (const { id, state: is } of state.sandboxes) {
    if (is === 'ready') await runtime.stopPodSandbox(id, { signal, timeoutMs: callTimeoutMs });
  }
}

function textFor(status: ContainerStatus, message: string): string {
  return message === '' ? `Stopping container ${status.metadata.name}` : message;
}
