import type { Pod } from '@keelson/kinds';
import { isStaticPod } from '../../base/pod/pod-spec.ts';

/** Pods with this priority or a higher one are critical to the system. */
const criticalPriority = 2_000_000_000;
const criticalAnnotation = 'scheduler.alpha.kubernetes.io/critical-pod';

/**
 * True for a critical static pod: it is admitted and never evicted under pressure. It is critical by its priority with
 * the gate PodPriority, and by its annotation in kube-system with ExperimentalCriticalPodAnnotation.
 */
export function isSpared(pod: Pod, gates: Readonly<Record<string, boolean>>): boolean {
  if (!isStaticPod(pod)) return false;
  const { namespace, annotations } = pod.metadata ?? {};
  const byPriority = gates['PodPriority'] === true && (pod.spec.priority ?? 0) >= criticalPriority;
  const marked = namespace === 'kube-system' && annotations?.[criticalAnnotation] === '';
  return byPriority || (gates['ExperimentalCriticalPodAnnotation'] === true && marked);
}
