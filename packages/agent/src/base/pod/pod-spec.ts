import type { Container, Pod } from '@keelson/kinds';

export type RestartPolicy = 'Always' | 'OnFailure' | 'Never';

/** The policy of the pod. */
export function restartPolicyOf(pod: Pod): RestartPolicy {
  return asPolicy(pod.spec.restartPolicy) ?? 'Always';
}

/**
 * The policy of one container of the pod: its own if it has one. An init container is either a sidecar or runs until it
 * succeeds.
 */
export function containerPolicy(pod: Pod, container: Container, init: boolean): RestartPolicy {
  const own = asPolicy(container.restartPolicy);
  if (own !== undefined) return own;
  const policy = restartPolicyOf(pod);
  return init && policy === 'Always' ? 'OnFailure' : policy;
}

/** A sidecar starts in the order of init containers and runs as long as the others. */
export function isSidecar(container: Container): boolean {
  return container.restartPolicy === 'Always';
}

export function restartsAfter(policy: RestartPolicy, exitCode: number): boolean {
  return policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0);
}

export function initContainersOf(pod: Pod): readonly Container[] {
  return pod.spec.initContainers ?? [];
}

/** Containers that were added to the running pod. They are started once and never again. */
export function ephemeralContainersOf(pod: Pod): readonly Container[] {
  return (pod.spec.ephemeralContainers ?? []).map((container) => ({ ...container, restartPolicy: 'Never' }));
}

/** Every container that may be named in a call, ephemeral ones last. */
export function namedContainersOf(pod: Pod): readonly Container[] {
  return [...allContainersOf(pod), ...ephemeralContainersOf(pod)];
}

/** The containers that make up the pod, init containers first. */
export function allContainersOf(pod: Pod): readonly Container[] {
  return [...initContainersOf(pod), ...(pod.spec.containers ?? [])];
}

export function uidOf(pod: Pod): string {
  return pod.metadata?.uid ?? '';
}

/** `namespace/name`: what people and files call a pod. */
export function fullNameOf(pod: Pod): string {
  return `${pod.metadata?.namespace ?? ''}/${pod.metadata?.name ?? ''}`;
}

export function isFinalPhase(phase: string | undefined): boolean {
  return phase === 'Succeeded' || phase === 'Failed';
}

function asPolicy(text: string | undefined): RestartPolicy | undefined {
  return text === 'Always' || text === 'OnFailure' || text === 'Never' ? text : undefined;
}
