import { type Clock, pause } from '@keelson/core/runtime';
import type { Pod } from '@keelson/kinds';
import type { PodQueries } from '../base/contracts/pod-queries.ts';
import type { PodConfigReader } from '../base/contracts/pod-source.ts';
import { MachineError } from '../base/machine-error.ts';

/**
 * The sources have a deadline. The pods are then checked after pauses of 1, 2, 4 … seconds until they run: see
 * docs/reference/agent-rules.md#run-once.
 */
const sourcesTimeoutMs = 1000;
const sourcesPollMs = 20;
const firstPauseMs = 1000;
const maxPauses = 10;

function hasStarted({ status }: Pod): boolean {
  return status?.phase === 'Running' || status?.phase === 'Succeeded';
}

const nameOf = ({ metadata }: Pod): string => `${metadata?.namespace}/${metadata?.name}`;

export interface RunOnceOptions {
  readonly pods: Pick<PodConfigReader, 'pods' | 'seenAllSources'>;
  readonly state: Pick<PodQueries, 'pods'>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * Waits until the pods of all sources are running or have succeeded.
 *
 * @returns the number of pods
 * @throws MachineError when a source is not read in time, or when a pod fails or does not start in time
 */
export async function runOnce({ pods, state, clock, signal }: RunOnceOptions): Promise<number> {
  const deadline = clock.monotonic() + sourcesTimeoutMs;
  while (!pods.seenAllSources()) {
    if (clock.monotonic() >= deadline)
      throw new MachineError('--runonce: not every source of pods could be read in time');
    await pause(clock, sourcesPollMs, signal);
    signal.throwIfAborted();
  }
  const wanted = new Set(pods.pods().map(({ metadata }) => metadata?.uid));
  for (let pauses = 0, ms = firstPauseMs; ; pauses += 1, ms *= 2) {
    const found = state.pods().filter(({ metadata }) => wanted.has(metadata?.uid));
    const failed = found.find(({ status }) => status?.phase === 'Failed');
    if (failed !== undefined)
      throw new MachineError(
        `--runonce: the pod ${nameOf(failed)} failed: ${failed.status?.reason ?? 'a container failed'}`,
      );
    if (found.filter(hasStarted).length === wanted.size) return wanted.size;
    if (pauses === maxPauses) {
      const late = pods
        .pods()
        .filter((pod) => !found.some((other) => other.metadata?.uid === pod.metadata?.uid && hasStarted(other)));
      throw new MachineError(`--runonce: pods do not run: ${late.map(nameOf).join(', ')}`);
    }
    await pause(clock, ms, signal);
    signal.throwIfAborted();
  }
}
