import type { RuntimeCapabilities } from '@keelson/container-runtime';

/**
 * What a daemon of CRI can do. CRI has no way to ask, and every daemon can do all of what it describes; what the
 * machine lacks (a kernel without AppArmor, no network plugin) shows when it is asked for.
 */
export function criCapabilities({ events }: { readonly events: boolean }): RuntimeCapabilities {
  return {
    rootFilesystem: 'image',
    podNetwork: true,
    hostNetwork: true,
    mounts: true,
    readonlyMounts: true,
    exactMounts: false,
    users: true,
    memoryLimits: true,
    cpuLimits: true,
    updateResources: true,
    containerPid: true,
    sharedPid: true,
    privileged: true,
    capabilitySets: true,
    readonlyRootfs: true,
    noNewPrivileges: true,
    seccomp: true,
    apparmor: true,
    sysctls: true,
    hostPorts: true,
    devices: true,
    tty: true,
    exec: true,
    attach: true,
    portForward: true,
    events,
    stats: true,
    logs: true,
    pullProgress: false,
    pull: true,
    survivesRestart: true,
  };
}
