import type { RuntimeCapabilities } from '@keelson/container-runtime';

/**
 * The capabilities of a CRI daemon. CRI has no call to query them, and every daemon supports the features of the
 * protocol. When the machine lacks a feature (a kernel without AppArmor, no network plugin), its use fails.
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
