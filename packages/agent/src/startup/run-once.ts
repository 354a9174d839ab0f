import { pause } from '@keelson/client';
import type { Clock } from '@keelson/core';
import type { Pod } from '@keelson/kinds';
import type { PodQueries } from '../base/contracts/pod-queries.ts';
import type { PodConfigReader } from '../base/contracts/pod-source.ts';
import { MachineError } from '../base/machine-error.ts';

/**
 * Deadline of the sources, then pauses of 1, 2, 4 … seconds until the pods run: see
 * docs/reference/agent-rules.md#run-once.
 */
const sourcesMs = 1000;
const stepMs = 20;
const firstPauseMs = 1000;
const maxPauses = 10;

function isUp({ status }: Pod): boolean {
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
 * Waits until the pods of all sources run, or have run.
 *
 * @returns how many they are
 * @throws MachineError when a source does not deliver, or a pod fails or does not get going
 */
export async function runOnce({ pods, state, clock, signal }: RunOnceOptions): Promise<number> {
  const deadline = clock.monotonic() + sourcesMs;
  while (!pods.seenAllSources()) {
    if (clock.monotonic() >= deadline)
      throw new MachineError('--runonce: not every source of pods could be read in time');
    await pause(clock, stepMs, signal);
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
    if (found.filter(isUp).length === wanted.size) return wanted.size;
    if (pauses === maxPauses) {
      const late = pods
        .pods()
        .filter((pod) => !found.some((other) => other.metadata?.uid === pod.metadata?.uid && isUp(other)));
      throw new MachineError(`--runonce: pods do not run: ${late.map(nameOf).join(', ')}`);
    }
    await pause(clock, ms, signal);
    signal.throwIfAborted();
  }
}
