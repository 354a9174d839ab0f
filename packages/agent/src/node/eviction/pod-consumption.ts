import type { Pod } from '@keelson/kinds';
import { countsInodes, type ScarceResource } from '../../base/config/eviction-signals.ts';
import type { PodUsage } from '../../base/contracts/pod-queries.ts';
import { uidOf } from '../../base/pod/pod-spec.ts';
import { podRequest } from './pod-requests.ts';
import type { Candidate } from './rank.ts';

/** Space in bytes and in inodes. */
export interface Space {
  readonly bytes: number;
  readonly inodes: number;
}

export interface ConsumptionContext {
  /** The usage of running pods by UID; a pod that the runtime does not have uses nothing. */
  readonly usage: ReadonlyMap<string, PodUsage>;
  /** Space of the logs and empty directories of pods, by their UID. */
  readonly files: ReadonlyMap<string, Space>;
  /** Writable layers of containers are with the images, on another file system than volumes and logs. */
  readonly ownImagefs: boolean;
  /** The gate PodPriority. */
  readonly priorities: boolean;
}

/** The usage of a resource by a pod, and its request. */
export function candidateOf(pod: Pod, resource: ScarceResource, context: ConsumptionContext): Candidate {
  return {
    usage: usageOf(pod, resource, context),
    request: countsInodes(resource) ? 0 : podRequest(pod, resource === 'memory' ? 'memory' : 'ephemeral-storage'),
    priority: context.priorities ? (pod.spec.priority ?? 0) : 0,
  };
}

function usageOf(pod: Pod, resource: ScarceResource, { usage, files, ownImagefs }: ConsumptionContext): number {
  const containers = usage.get(uidOf(pod))?.containers ?? [];
  if (resource === 'memory') return sum(containers.map(({ memoryWorkingSetBytes }) => memoryWorkingSetBytes));
  const layers = containers.map(({ writableLayer: layer }) => ({
    bytes: layer?.usedBytes ?? 0,
    inodes: layer?.inodesUsed ?? 0,
  }));
  const own = files.get(uidOf(pod)) ?? { bytes: 0, inodes: 0 };
  const ofImagefs = resource === 'imagefs' || resource === 'imagefsInodes';
  const spaces = ownImagefs ? (ofImagefs ? layers : [own]) : [...layers, own];
  return sum(spaces.map(({ bytes, inodes }) => (countsInodes(resource) ? inodes : bytes)));
}

/** Names of the emptyDir volumes on the disk of the agent. */
export function emptyDirsOnDisk(pod: Pod): string[] {
  return (pod.spec.volumes ?? [])
    .filter(({ emptyDir }) => emptyDir && emptyDir.medium !== 'Memory')
    .map(({ name }) => name);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}
