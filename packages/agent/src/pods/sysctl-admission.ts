import type { ContainerRuntime, RuntimeCapabilities } from '@keelson/container-runtime';
import type { Pod } from '@keelson/kinds';
import type { PodVerdict } from './status/pod-status.ts';

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
