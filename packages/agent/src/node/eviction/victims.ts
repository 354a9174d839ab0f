import type { Pod } from '@keelson/kinds';
import type { ScarceResource } from '../../base/config/eviction-signals.ts';
import type { PodUsage } from '../../base/contracts/pod-queries.ts';
import { isFinalPhase, uidOf } from '../../base/pod/pod-spec.ts';
import type { PodWorker } from '../../pods/pod-workers.ts';
import { isSpared } from './critical-pod.ts';
import type { DiskSpace } from './disk-space.ts';
import { candidateOf, type Space } from './pod-consumption.ts';
import { byEviction, type Candidate } from './rank.ts';

/** A running or starting pod that may be evicted. */
export interface ActivePod {
  readonly worker: PodWorker;
  readonly pod: Pod;
}

/** A pod with its usage of the scarce resource. */
export interface Victim extends Candidate, ActivePod {
  /** The usage that the runtime reports; undefined when it does not have the pod. */
  readonly found: PodUsage | undefined;
}

export interface VictimsOptions {
  readonly workers: () => Iterable<PodWorker>;
  readonly usage: (signal: AbortSignal) => Promise<readonly PodUsage[]>;
  readonly disk: DiskSpace;
  readonly gates: Readonly<Record<string, boolean>>;
}

/** Pods that may be evicted, in the order of eviction. @throws when the runtime does not report their usage */
export async function rankVictims(
  resource: ScarceResource,
  ownImagefs: boolean,
  options: VictimsOptions,
  signal: AbortSignal,
): Promise<readonly Victim[]> {
  const { usage, disk, gates } = options;
  const active = activePods(options);
  const found = new Map((await usage(signal)).map((one) => [one.uid, one]));
  const files = new Map<string, Space>();
  if (resource !== 'memory') for (const { pod } of active) files.set(uidOf(pod), await disk.files(pod, signal));
  const context = { usage: found, files, ownImagefs, priorities: gates['PodPriority'] === true };
  return active
    .map(({ worker, pod }) => ({ worker, pod, found: found.get(uidOf(pod)), ...candidateOf(pod, resource, context) }))
    .sort(byEviction);
}

/** Pods that may be evicted. */
export function activePods({ workers, gates }: Pick<VictimsOptions, 'workers' | 'gates'>): readonly ActivePod[] {
  return [...workers()].flatMap((worker) =>
    worker.pod && isActive(worker) && !isSpared(worker.pod, gates) ? [{ worker, pod: worker.pod }] : [],
  );
}

function isActive({ stage, leaving, record }: PodWorker): boolean {
  return stage === 'active' && !leaving && !isFinalPhase(record.status.phase) && record.verdict?.phase !== 'Failed';
}
