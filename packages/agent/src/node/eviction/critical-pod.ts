import type { Pod } from '@keelson/kinds';
import { isStaticPod } from '../../base/pod/pod-annotations.ts';

/** From this priority on the system depends on a pod. */
const criticalPriority = 2_000_000_000;
const criticalAnnotation = 'scheduler.alpha.kubernetes.io/critical-pod';

/**
 * True for a pod of the machine's own that the system depends on: it is taken and kept however short the node is. By
 * its priority with the gate PodPriority, by its annotation in the namespace of the system with
 * ExperimentalCriticalPodAnnotation.
 */
export function isSpared(pod: Pod, gates: Readonly<Record<string, boolean>>): boolean {
  if (!isStaticPod(pod)) return false;
  const { namespace, annotations } = pod.metadata ?? {};
  const byPriority = gates['PodPriority'] === true && (pod.spec.priority ?? 0) >= criticalPriority;
  const marked = namespace === 'kube-system' && annotations?.[criticalAnnotation] === '';
  return byPriority || (gates['ExperimentalCriticalPodAnnotation'] === true && marked);
}
