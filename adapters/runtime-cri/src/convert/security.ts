import type { ContainerSecurityContext, NamespaceOptions, SecurityProfile } from '@keelson/container-runtime';
import { NamespaceMode, type NamespaceOption, type SecurityProfileMessage } from '../api/common.ts';
import type { LinuxContainerSecurityContext } from '../api/container.ts';
import type { Fields } from '../wire/message.ts';

/** Daemons hide nothing by themselves: what a container must not see of the machine is the caller's to name. */
const maskedPaths = [
  '/proc/acpi',
  '/proc/kcore',
  '/proc/keys',
  '/proc/latency_stats',
  '/proc/timer_list',
  '/proc/timer_stats',
  '/proc/sched_debug',
  '/proc/scsi',
  '/sys/firmware',
  '/sys/devices/virtual/powercap',
];
const readonlyPaths = ['/proc/asound', '/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'];

export function toNamespaces({ network, pid, ipc }: NamespaceOptions): Fields<typeof NamespaceOption> {
  return { network: NamespaceMode[network], pid: NamespaceMode[pid], ipc: NamespaceMode[ipc] };
}

/** Absent options are those of the protocol: everything is the pod's. */
export function fromNamespaces({ network, pid, ipc }: Fields<typeof NamespaceOption>): NamespaceOptions {
  const { container, node } = NamespaceMode;
  return {
    network: network === node ? 'node' : 'pod',
    pid: pid === node ? 'node' : pid === container ? 'container' : 'pod',
    ipc: ipc === node ? 'node' : 'pod',
  };
}

export const wrapped = (value: number | undefined) => (value === undefined ? undefined : { value });

const profileTypes = { runtimeDefault: 0, unconfined: 1, localhost: 2 } as const;

export function toProfile(profile: SecurityProfile | undefined): Fields<typeof SecurityProfileMessage> | undefined {
  if (profile === undefined) return undefined;
  return { profileType: profileTypes[profile.type], localhostRef: profile.localhostRef };
}

/** The same in the words of daemons that do not know the field yet. */
export function toProfilePath(profile: SecurityProfile | undefined): string | undefined {
  if (profile === undefined) return undefined;
  if (profile.type === 'localhost') return `localhost/${profile.localhostRef ?? ''}`;
  return profile.type === 'runtimeDefault' ? 'runtime/default' : 'unconfined';
}

/** `namespaces` are those of the sandbox, for a container that names none. */
export function toSecurityContext(
  context: ContainerSecurityContext,
  namespaces: NamespaceOptions,
): Fields<typeof LinuxContainerSecurityContext> {
  const { capabilities, privileged = false, selinux } = context;
  return {
    capabilities: capabilities && { addCapabilities: capabilities.add, dropCapabilities: capabilities.drop },
    privileged,
    namespaceOptions: toNamespaces(context.namespaces ?? namespaces),
    selinuxOptions: selinux,
    runAsUser: wrapped(context.runAsUser),
    runAsUsername: context.runAsUsername,
    runAsGroup: wrapped(context.runAsGroup),
    readonlyRootfs: context.readonlyRootfs,
    supplementalGroups: context.supplementalGroups,
    noNewPrivs: context.noNewPrivileges,
    seccomp: toProfile(context.seccomp),
    seccompProfilePath: toProfilePath(context.seccomp),
    apparmor: toProfile(context.apparmor),
    apparmorProfile: toProfilePath(context.apparmor),
    ...(!privileged && {
      maskedPaths: context.maskedPaths ?? maskedPaths,
      readonlyPaths: context.readonlyPaths ?? readonlyPaths,
    }),
  };
}
