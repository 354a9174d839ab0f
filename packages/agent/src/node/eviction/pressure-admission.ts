import { type Pod, qosClassOf } from '@keelson/kinds';
import type { PressureCondition } from '../../base/config/eviction-signals.ts';
import type { PodVerdict } from '../../pods/status/pod-status.ts';
import { isSpared } from './critical-pod.ts';

/**
 * Why a node under pressure rejects a pod: under memory pressure BestEffort pods, under disk pressure all pods.
 * Undefined when the pod is admitted.
 */
export function pressureRejection(
  pod: Pod,
  conditions: ReadonlySet<PressureCondition>,
  gates: Readonly<Record<string, boolean>>,
): PodVerdict | undefined {
  const refused =
    conditions.has('DiskPressure') || (conditions.has('MemoryPressure') && qosClassOf(pod.spec) === 'BestEffort');
  if (!refused || isSpared(pod, gates)) return undefined;
  const message = `The node had condition: [${[...conditions].sort().reverse().join(' ')}].`;
  return { phase: 'Failed', reason: 'Evicted', message };
}
