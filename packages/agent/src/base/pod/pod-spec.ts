import type { Container, Pod } from '@keelson/kinds';

export type RestartPolicy = 'Always' | 'OnFailure' | 'Never';

/** The restart policy of the pod. */
export function restartPolicyOf(pod: Pod): RestartPolicy {
  return asPolicy(pod.spec.restartPolicy) ?? 'Always';
}

/**
 * The restart policy of a container: its own if it has one, otherwise that of the pod. An init container without its
 * own policy is restarted until it succeeds, unless the policy of the pod is `Never`.
 */
export function containerPolicy(pod: Pod, container: Container, init: boolean): RestartPolicy {
  const own = asPolicy(container.restartPolicy);
  if (own !== undefined) return own;
  const policy = restartPolicyOf(pod);
  return init && policy === 'Always' ? 'OnFailure' : policy;
}

/** True for a sidecar: it starts in the order of init containers and runs as long as the containers of the pod. */
export function isSidecar(container: Container): boolean {
  return container.restartPolicy === 'Always';
}

export function restartsAfter(policy: RestartPolicy, exitCode: number): boolean {
  return policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0);
}

export function initContainersOf(pod: Pod): readonly Container[] {
  return pod.spec.initContainers ?? [];
}

/** Containers that were added to the running pod. They are started once and never restarted. */
export function ephemeralContainersOf(pod: Pod): readonly Container[] {
  return (pod.spec.ephemeralContainers ?? []).map((container) => ({ ...container, restartPolicy: 'Never' }));
}

/** Every container that a request can name, ephemeral containers last. */
export function namedContainersOf(pod: Pod): readonly Container[] {
  return [...allContainersOf(pod), ...ephemeralContainersOf(pod)];
}

/** Init containers and containers of the pod, in this order. */
export function allContainersOf(pod: Pod): readonly Container[] {
  return [...initContainersOf(pod), ...(pod.spec.containers ?? [])];
}

export function uidOf(pod: Pod): string {
  return pod.metadata?.uid ?? '';
}

/** `namespace/name`, the identity of a pod for people and in file names. */
export function fullNameOf(pod: Pod): string {
  return `${pod.metadata?.namespace ?? ''}/${pod.metadata?.name ?? ''}`;
}

export function isFinalPhase(phase: string | undefined): boolean {
  return phase === 'Succeeded' || phase === 'Failed';
}

function asPolicy(text: string | undefined): RestartPolicy | undefined {
  return text === 'Always' || text === 'OnFailure' || text === 'Never' ? text : undefined;
}
