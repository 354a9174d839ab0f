import { quantityValue } from '@keelson/core';
import type { Pod } from '@keelson/kinds';
import type { PodUsage } from '../../base/contracts/pod-queries.ts';
import { emptyDirsOnDisk, type Space } from './pod-consumption.ts';

/** A limit that a pod exceeds: its signal and a message. */
export interface ExceededLimit {
  readonly signal: 'emptydirfs.limit' | 'ephemeralpodfs.limit' | 'ephemeralcontainerfs.limit';
  readonly message: string;
}

/**
 * The first limit of local storage that a pod exceeds: of an emptyDir, of all its containers together with volumes and
 * logs, or of the writable layer of one container. Undefined when it exceeds none.
 */
export function exceededLimit(pod: Pod, usage: PodUsage, logs: Space): ExceededLimit | undefined {
  return ofVolumes(pod, usage) ?? ofPod(pod, usage, logs) ?? ofContainers(pod, usage);
}

function ofVolumes(pod: Pod, { volumes = [] }: PodUsage): ExceededLimit | undefined {
  for (const { name, emptyDir } of pod.spec.volumes ?? []) {
    // The kernel enforces the limit of a volume in memory, which is never above it.
    if (emptyDir?.sizeLimit === undefined) continue;
    const used = volumes.find((volume) => volume.name === name)?.usedBytes ?? 0;
    if (!isAbove(used, emptyDir.sizeLimit)) continue;
    return {
      signal: 'emptydirfs.limit',
      message: `Usage of EmptyDir volume "${name}" exceeds the limit "${emptyDir.sizeLimit}".`,
    };
  }
  return undefined;
}

/** A pod has a limit only if all its containers have one. */
function ofPod(pod: Pod, { containers, volumes = [] }: PodUsage, logs: Space): ExceededLimit | undefined {
  const limits = (pod.spec.containers ?? []).map(({ resources }) => resources?.limits?.['ephemeral-storage']);
  if (limits.length === 0 || limits.some((limit) => limit === undefined)) return undefined;
  const total = limits.reduce((sum, limit) => sum + Number(quantityValue(limit ?? '0')), 0);
  const own = new Set(emptyDirsOnDisk(pod));
  const parts = [
    ...containers.map(({ writableLayer }) => writableLayer?.usedBytes ?? 0),
    ...volumes.filter(({ name }) => own.has(name)).map(({ usedBytes }) => usedBytes),
    logs.bytes,
  ];
  if (parts.reduce((sum, bytes) => sum + bytes, 0) <= total) return undefined;
  return {
    signal: 'ephemeralpodfs.limit',
    message: `Pod ephemeral local storage usage exceeds the total limit of containers ${limits.join(' + ')}.`,
  };
}

function ofContainers(pod: Pod, { containers }: PodUsage): ExceededLimit | undefined {
  for (const { name, resources } of pod.spec.containers ?? []) {
    const limit = resources?.limits?.['ephemeral-storage'];
    const used = containers.find((container) => container.name === name)?.writableLayer?.usedBytes ?? 0;
    if (limit === undefined || !isAbove(used, limit)) continue;
    return {
      signal: 'ephemeralcontainerfs.limit',
      message: `Container ${name} exceeded its local ephemeral storage limit "${limit}".`,
    };
  }
  return undefined;
}

/** Whether a pod has a limit that `exceededLimit` compares with its usage. */
export function limitsStorage({ spec }: Pod): boolean {
  return (
    (spec.volumes ?? []).some(({ emptyDir }) => emptyDir?.sizeLimit !== undefined) ||
    (spec.containers ?? []).some(({ resources }) => resources?.limits?.['ephemeral-storage'] !== undefined)
  );
}

function isAbove(bytes: number, limit: string): boolean {
  return bytes > Number(quantityValue(limit));
}
