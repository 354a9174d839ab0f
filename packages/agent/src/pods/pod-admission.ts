import type { ContainerRuntime, RuntimeCapabilities } from '@keelson/container-runtime';
import type { Container, Pod } from '@keelson/kinds';
import type { AgentConfig, AllowedSources } from '../base/config/agent-config.ts';
import type { PodEvents } from '../base/events/event-recorder.ts';
import { allContainersOf, fullNameOf, isFinalPhase, sourceWordOf, uidOf } from '../base/pod/pod-spec.ts';
import type { RuntimePods } from '../runtime-view/runtime-pods.ts';
import type { MirrorIndex } from './pod-intake.ts';
import { newPodRecord, type PodRecord } from './pod-workers.ts';
import type { PodVerdict } from './status/pod-status.ts';

/** The pods that the node has accepted. */
export interface AcceptedPods {
  readonly size: number;
  all(): Iterable<{ readonly pod: Pod | undefined; readonly record: PodRecord }>;
}

export interface PodAdmissionOptions {
  readonly offer: NodeOffer;
  readonly states: Pick<RuntimePods, 'get'>;
  readonly mirrors: MirrorIndex;
  readonly events: PodEvents;
  /** Why the node rejects a pod under its present pressure; undefined = the pod is accepted. */
  readonly shortFor: (pod: Pod) => PodVerdict | undefined;
}

/** Decides whether the node accepts a new pod. */
export class PodAdmission {
  readonly #options: PodAdmissionOptions;

  constructor(options: PodAdmissionOptions) {
    this.#options = options;
  }

  /** The first record of a pod: its last reported status, and the verdict when the pod is rejected. */
  recordOf(pod: Pod, accepted: AcceptedPods): PodRecord {
    const { offer, states, mirrors, events, shortFor } = this.#options;
    const record = newPodRecord(pod.status ?? mirrors.get(fullNameOf(pod))?.status ?? {});
    if (hasStarted(pod) || states.get(uidOf(pod)) !== undefined) return record;
    const refused = permanentRejection(pod, this.#placesTaken(accepted), offer);
    if (refused !== undefined) events.record(pod, 'Warning', refused.reason, refused.message);
    record.verdict = refused ?? shortFor(pod);
    return record;
  }

  /** Finished pods are only excluded from the count when the total exceeds the limit. */
  #placesTaken(accepted: AcceptedPods): number {
    if (accepted.size < this.#options.offer.maxPods) return accepted.size;
    let taken = 0;
    for (const { pod, record } of accepted.all()) {
      if (pod && !isFinalPhase(record.status.phase) && record.verdict?.phase !== 'Failed') taken += 1;
    }
    return taken;
  }
}

/** A pod that has been started on this node is not rejected any more. */
function hasStarted({ status }: Pod): boolean {
  return status?.startTime !== undefined || (status?.containerStatuses?.length ?? 0) > 0;
}

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

/** Sysctls that cannot affect other pods: see docs/reference/agent-rules.md#sysctls-of-pods. */
const safe = ['kernel.shm_rmid_forced', 'net.ipv4.ip_local_port_range', 'net.ipv4.tcp_syncookies'];

const ofIpc = /^(kernel\.(shm|msg|sem)|fs\.mqueue\.)/;
const ofNetwork = /^net\./;

/** Facts of a node that decide which sysctls pods may set. */
export interface SysctlOffer {
  /** Names beside the safe ones, or prefixes that end in `*`. */
  readonly allowedUnsafeSysctls: readonly string[];
  readonly runtime: Pick<ContainerRuntime, 'name'> & {
    readonly capabilities: Pick<RuntimeCapabilities, 'sysctls' | 'podNetwork'>;
  };
}

/** Why the node does not run a pod with these sysctls; undefined when it does. */
export function sysctlRejection(pod: Pod, { allowedUnsafeSysctls, runtime }: SysctlOffer): PodVerdict | undefined {
  const [first] = pod.spec.securityContext?.sysctls ?? [];
  if (first === undefined) return undefined;
  const forbidden = forbiddenSysctl(pod, allowedUnsafeSysctls, runtime.capabilities.podNetwork);
  if (forbidden !== undefined) return { phase: 'Failed', reason: 'SysctlForbidden', message: forbidden };
  if (runtime.capabilities.sysctls) return undefined;
  const message = `sysctl "${first.name}" cannot be set: the runtime "${runtime.name}" of this node sets none`;
  return { phase: 'Failed', reason: 'SysctlUnsupported', message };
}

function forbiddenSysctl(pod: Pod, allowed: readonly string[], podNetwork: boolean): string | undefined {
  const { hostIPC, hostNetwork, securityContext } = pod.spec;
  for (const { name } of securityContext?.sysctls ?? []) {
    // Names are written with dots or slashes.
    const dotted = name.replaceAll('/', '.');
    const isAllowed = [...safe, ...allowed].some((pattern) =>
      pattern.endsWith('*') ? dotted.startsWith(pattern.slice(0, -1)) : dotted === pattern,
    );
    if (!isAllowed) return `sysctl "${name}" is not allowed on this node`;
    if (hostIPC === true && ofIpc.test(dotted)) return `sysctl "${name}" is not allowed with host IPC`;
    if (hostNetwork === true && ofNetwork.test(dotted)) return `sysctl "${name}" is not allowed with host network`;
    if (!podNetwork && ofNetwork.test(dotted))
      return `sysctl "${name}" is not allowed: pods of this node have no network of their own`;
  }
  return undefined;
}
