import type { Pod } from '@keelson/kinds';

/** What a pod may set without harm to others (agent.md B.7). */
const safe = ['kernel.shm_rmid_forced', 'net.ipv4.ip_local_port_range', 'net.ipv4.tcp_syncookies'];

const ofIpc = /^(kernel\.(shm|msg|sem)|fs\.mqueue\.)/;
const ofNetwork = /^net\./;

/** Why the sysctls of a pod are not for this node; undefined when they are. `allowed` are names, or prefixes that end in `*`. */
export function forbiddenSysctl(pod: Pod, allowed: readonly string[]): string | undefined {
  const { hostIPC, hostNetwork, securityContext } = pod.spec;
  for (const { name } of securityContext?.sysctls ?? []) {
    // Both ways of writing a name are in use.
    const dotted = name.replaceAll('/', '.');
    const isAllowed = [...safe, ...allowed].some((pattern) =>
      pattern.endsWith('*') ? dotted.startsWith(pattern.slice(0, -1)) : dotted === pattern,
    );
    if (!isAllowed) return `sysctl "${name}" is not allowed on this node`;
    if (hostIPC === true && ofIpc.test(dotted)) return `sysctl "${name}" is not allowed with host IPC`;
    if (hostNetwork === true && ofNetwork.test(dotted)) return `sysctl "${name}" is not allowed with host network`;
  }
  return undefined;
}
