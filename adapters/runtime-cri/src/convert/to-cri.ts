import { posix } from 'node:path';
import {
  type ContainerConfig,
  type ContainerSecurityContext,
  type LinuxResources,
  type NamespaceOptions,
  type PodSandboxConfig,
  RuntimeError,
  type SecurityProfile,
} from '@keelson/container-runtime';
import { isJsonObject } from '@keelson/core/internal';
import {
  type LinuxContainerResources,
  NamespaceMode,
  type NamespaceOption,
  type SecurityProfileMessage,
} from '../api/common.ts';
import { type ContainerConfigMessage, type LinuxContainerSecurityContext, MountPropagation } from '../api/container.ts';
import { PodSandboxConfigMessage, type PodSandboxStatusMessage, Protocol } from '../api/sandbox.ts';
import type { Fields } from '../wire/message.ts';
import {
  containerAnnotation,
  recordOf,
  sandboxAnnotation,
  type TextMap,
  withAnnotation,
  withoutOwnAnnotations,
} from './own-annotations.ts';

export type SandboxMessage = Fields<typeof PodSandboxConfigMessage>;

/** Converts the configuration and stores it in an annotation, because CRI requires it again for every container. */
export function toSandboxMessage(config: PodSandboxConfig, unifiedCgroups: boolean): SandboxMessage {
  const { dns, metadata, securityContext: security = {}, resources } = config;
  const settings: SandboxMessage = {
    hostname: config.hostname,
    logDirectory: config.logDirectory,
    dnsConfig: dns,
    portMappings: config.portMappings?.map((port) => ({ ...port, protocol: Protocol[port.protocol] })),
    linux: {
      cgroupParent: config.cgroupParent,
      sysctls: config.sysctls,
      resources: resources && toResources(resources, unifiedCgroups),
      securityContext: {
        namespaceOptions: security.namespaces && toNamespaces(security.namespaces),
        runAsUser: wrapped(security.runAsUser),
        runAsGroup: wrapped(security.runAsGroup),
        supplementalGroups: security.supplementalGroups,
        readonlyRootfs: security.readonlyRootfs,
        privileged: security.privileged,
      },
    },
  };
  const ownData = PodSandboxConfigMessage.encode(settings).toString('base64');
  return {
    ...settings,
    metadata,
    labels: config.labels,
    annotations: withAnnotation(config.annotations, sandboxAnnotation, ownData),
  };
}

/** Restores the configuration of a sandbox from its status, also when another process created the sandbox. */
export function recallSandbox(status: Fields<typeof PodSandboxStatusMessage>): SandboxMessage {
  const ownData = status.annotations?.[sandboxAnnotation];
  const settings: SandboxMessage =
    ownData === undefined ? {} : PodSandboxConfigMessage.decode(Buffer.from(ownData, 'base64'));
  return {
    linux: { securityContext: { namespaceOptions: status.linux?.namespaces?.options } },
    ...settings,
    metadata: status.metadata,
    labels: status.labels,
    annotations: ownData === undefined ? withoutOwnAnnotations(status.annotations) : status.annotations,
  };
}

export function namespacesOf(sandbox: SandboxMessage): NamespaceOptions {
  return fromNamespaces(sandbox.linux?.securityContext?.namespaceOptions ?? {});
}

/** Data about a container that this adapter stores in an annotation of the container. */
export interface OwnContainerData {
  /** Image reference of the configuration; daemons may report another name of the same image. */
  readonly image?: string;
  readonly stopSignal?: string;
}

export interface SandboxContext {
  readonly namespaces: NamespaceOptions;
  readonly unifiedCgroups: boolean;
}

/** @throws `InvalidArgument` */
export function toContainerMessage(
  config: ContainerConfig,
  sandbox: SandboxContext,
): Fields<typeof ContainerConfigMessage> {
  check(config);
  const { image, stopSignal, resources = {}, securityContext = {} } = config;
  const ownData: OwnContainerData = { image, ...(stopSignal !== undefined && { stopSignal }) };
  return {
    metadata: config.metadata,
    image: { image },
    command: config.command,
    args: config.args,
    workingDir: config.workingDir,
    envs: config.env?.map(({ name, value }) => ({ key: name, value })),
    mounts: config.mounts?.map(({ propagation = 'private', ...mount }) => ({
      ...mount,
      propagation: MountPropagation[propagation],
    })),
    devices: config.devices,
    labels: config.labels,
    annotations: withAnnotation(config.annotations, containerAnnotation, JSON.stringify(ownData)),
    logPath: config.logPath,
    stdin: config.stdin,
    stdinOnce: config.stdinOnce,
    tty: config.tty,
    linux: {
      resources: toResources(resources, sandbox.unifiedCgroups),
      securityContext: toSecurityContext(securityContext, sandbox.namespaces),
    },
  };
}

export function ownDataOf(annotations: TextMap | undefined): OwnContainerData {
  const { image, stopSignal } = recordOf(annotations?.[containerAnnotation]);
  return { ...(typeof image === 'string' && { image }), ...(typeof stopSignal === 'string' && { stopSignal }) };
}

/** Rejects environment variables and log paths that daemons would accept without an error or fail on later. */
function check({ env = [], logPath }: ContainerConfig): void {
  for (const { name, value } of env) {
    if (name === '' || /[=\0]/.test(name) || value.includes('\0'))
      throw new RuntimeError('InvalidArgument', `invalid name or value of the environment variable "${name}"`);
  }
  if (logPath === undefined) return;
  const normalized = posix.normalize(logPath);
  if (posix.isAbsolute(logPath) || normalized === '..' || normalized.startsWith('../'))
    throw new RuntimeError('InvalidArgument', `log path is outside of the log directory: "${logPath}"`);
}

/** Default masked paths, because daemons mask only the paths that the client lists. */
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

/** Applies the defaults of the protocol to absent options: all namespaces are those of the pod. */
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

/** The older text form of a profile, for daemons without the structured field. */
export function toProfilePath(profile: SecurityProfile | undefined): string | undefined {
  if (profile === undefined) return undefined;
  if (profile.type === 'localhost') return `localhost/${profile.localhostRef ?? ''}`;
  return profile.type === 'runtimeDefault' ? 'runtime/default' : 'unconfined';
}

/** `namespaces` are those of the sandbox, which apply when the context specifies none. */
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

type ResourcesMessage = Fields<typeof LinuxContainerResources>;

/**
 * CRI has no field for the limit of processes. On machines with only cgroups of version 2 it is sent as the content of
 * the cgroup file `pids.max`.
 */
export function toResources(resources: LinuxResources, unifiedCgroups: boolean): ResourcesMessage {
  const { pidsLimit } = resources;
  return {
    cpuPeriod: resources.cpuPeriodUs,
    cpuQuota: resources.cpuQuotaUs,
    cpuShares: resources.cpuShares,
    memoryLimitInBytes: resources.memoryLimitBytes,
    oomScoreAdj: resources.oomScoreAdjust,
    cpusetCpus: resources.cpusetCpus,
    cpusetMems: resources.cpusetMems,
    unified:
      pidsLimit !== undefined && unifiedCgroups ? { 'pids.max': pidsLimit < 0 ? 'max' : String(pidsLimit) } : undefined,
  };
}

export function fromResources(message: ResourcesMessage): LinuxResources {
  return present({
    cpuShares: message.cpuShares,
    cpuQuotaUs: message.cpuQuota,
    cpuPeriodUs: message.cpuPeriod,
    cpusetCpus: message.cpusetCpus,
    cpusetMems: message.cpusetMems,
    memoryLimitBytes: message.memoryLimitInBytes,
    oomScoreAdjust: message.oomScoreAdj,
    pidsLimit: pidsLimitOf(message.unified?.['pids.max']),
  });
}

function pidsLimitOf(file: string | undefined): number | undefined {
  if (file === 'max') return -1;
  return file !== undefined && /^\d+$/.test(file) ? Number(file) : undefined;
}

/** Reads resources from an OCI runtime specification, for daemons that do not report them in CRI fields. */
export function resourcesOfSpec(spec: unknown): LinuxResources {
  const { linux, process } = isJsonObject(spec) ? spec : {};
  const resources = isJsonObject(linux) && isJsonObject(linux['resources']) ? linux['resources'] : {};
  const cpu = isJsonObject(resources['cpu']) ? resources['cpu'] : {};
  const memory = isJsonObject(resources['memory']) ? resources['memory'] : {};
  const pids = isJsonObject(resources['pids']) ? resources['pids'] : {};
  return present({
    cpuShares: numberIn(cpu['shares']),
    cpuQuotaUs: numberIn(cpu['quota']),
    cpuPeriodUs: numberIn(cpu['period']),
    cpusetCpus: textIn(cpu['cpus']),
    cpusetMems: textIn(cpu['mems']),
    memoryLimitBytes: numberIn(memory['limit']),
    oomScoreAdjust: isJsonObject(process) ? numberIn(process['oomScoreAdj']) : undefined,
    pidsLimit: numberIn(pids['limit']),
  });
}

const numberIn = (value: unknown) => (typeof value === 'number' && value !== 0 ? value : undefined);
const textIn = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined);

/** Removes fields that are undefined, empty or zero. */
function present(fields: { readonly [K in keyof LinuxResources]: LinuxResources[K] | undefined }): LinuxResources {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== '' && value !== 0),
  );
}
