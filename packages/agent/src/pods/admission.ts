import type { Container, Pod } from '@keelson/kinds';
import type { AgentConfig, AllowedSources } from '../base/config/agent-config.ts';
import { sourceWordOf } from '../base/pod/pod-annotations.ts';
import { allContainersOf } from '../base/pod/pod-spec.ts';
import type { PodVerdict } from './status/pod-status.ts';
import { type SysctlOffer, sysctlRejection } from './sysctl-admission.ts';

/**
 * Why a pod is rejected by the configuration of this agent, while another configuration would accept it: see
 * docs/reference/agent-rules.md#admission-of-pods.
 */
export function configurationRejection(
  pod: Pod,
  config: Pick<AgentConfig, 'sources' | 'limits'>,
): PodVerdict | undefined {
  const { hostNetwork, hostPID, hostIPC } = pod.spec;
  const { sources, limits } = config;
  const checks: readonly (readonly [boolean, string])[] = [
    [hostNetwork === true && !allows(sources.hostNetwork, pod), 'pod may not use host network'],
    [hostPID === true && !allows(sources.hostPid, pod), 'pod may not use host PID'],
    [hostIPC === true && !allows(sources.hostIpc, pod), 'pod may not use host IPC'],
    [!limits.allowPrivileged && asksForPrivileges(pod), 'pod may not have privileged containers'],
  ];
  const [, message] = checks.find(([refused]) => refused) ?? [];
  return message === undefined ? undefined : { phase: 'Pending', reason: 'Forbidden', message };
}

/**
 * Why an ephemeral container of an admitted pod is not started: a pod with this container would not have been admitted.
 */
export function ephemeralContainerRejection(
  pod: Pod,
  container: Container,
  config: Pick<AgentConfig, 'sources' | 'limits'>,
): string | undefined {
  const alone = { ...pod, spec: { ...pod.spec, initContainers: [], containers: [container] } };
  const lacking = unsupported(alone);
  return configurationRejection(alone, config)?.message ?? (lacking && `this agent does not support ${lacking}`);
}

/** The resources and functions that the node offers to pods. */
export interface NodeOffer extends SysctlOffer {
  readonly maxPods: number;
}

/** Why a pod is rejected permanently; undefined when the node accepts it. */
export function permanentRejection(pod: Pod, others: number, offer: NodeOffer): PodVerdict | undefined {
  const { maxPods } = offer;
  const sysctls = sysctlRejection(pod, offer);
  if (sysctls !== undefined) return sysctls;
  if (others >= maxPods) {
    const message = `Node didn't have enough capacity: pods, requested: 1, used: ${others}, capacity: ${maxPods}`;
    return { phase: 'Failed', reason: 'OutOfpods', message };
  }
  const lacking = unsupported(pod);
  if (lacking === undefined) return undefined;
  return { phase: 'Failed', reason: 'UnsupportedPod', message: `this agent does not support ${lacking}` };
}

function unsupported(pod: Pod): string | undefined {
  for (const container of allContainersOf(pod)) {
    const { livenessProbe, readinessProbe, startupProbe } = container;
    if ([livenessProbe, readinessProbe, startupProbe].some((probe) => probe?.grpc)) return 'gRPC probes';
    if (container.restartPolicyRules?.length) return 'restart policy rules';
    if (container.volumeDevices?.length) return 'block devices';
  }
  if (pod.spec.runtimeClassName) return 'runtime classes';
  if (pod.spec.resourceClaims?.length) return 'resource claims';
  if (pod.spec.hostUsers === false) return 'user namespaces';
  return pod.spec.os?.name && pod.spec.os.name !== 'linux' ? `operating system ${pod.spec.os.name}` : undefined;
}

function allows(sources: AllowedSources, pod: Pod): boolean {
  return sources.includes('*') || sources.includes(sourceWordOf(pod));
}

function asksForPrivileges(pod: Pod): boolean {
  return allContainersOf(pod).some(({ securityContext }) => securityContext?.privileged === true);
}

/** The maximum number of pods on the node. */
export function podCapacity({ maxPods, podsPerCore }: AgentConfig['limits'], cores: number): number {
  return podsPerCore > 0 ? Math.min(maxPods, podsPerCore * cores) : maxPods;
}
