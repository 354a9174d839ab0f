import { constants } from 'node:os';
import {
  type Container,
  type ContainerState,
  type ContainerStats,
  type ContainerStatus,
  ExitReason,
  type FilesystemUsage,
  type Image,
  type ImageConfig,
  type Mount,
  type PodSandbox,
  type PodSandboxStatus,
  type SandboxState,
} from '@keelson/container-runtime';
import { isJsonObject } from '@keelson/core/internal';
import type { FilesystemUsageMessage } from '../api/common.ts';
import {
  type ContainerMessage,
  ContainerStateNumber,
  type ContainerStatusMessage,
  type MountMessage,
  MountPropagation,
} from '../api/container.ts';
import type { ImageMessage } from '../api/image.ts';
import { type PodSandboxMessage, type PodSandboxStatusMessage, SandboxStateNumber } from '../api/sandbox.ts';
import type { ContainerStatsMessage } from '../api/stats.ts';
import type { Fields } from '../wire/message.ts';
import { recordOf, type TextMap, withoutOwnAnnotations } from './own-annotations.ts';
import { fromNamespaces, fromResources, ownDataOf, resourcesOfSpec } from './to-cri.ts';

const stateNames = new Map<number, ContainerState>(
  Object.entries(ContainerStateNumber).map(([name, number]) => [number, name as ContainerState]),
);
const signalNames = new Map<number, string>(Object.entries(constants.signals).map(([name, number]) => [number, name]));

/** Exit code of a container whose exit the daemon did not observe. */
const unknownExitCode = 137;

/** Converts a container state from its number in CRI. */
export function containerState(state: number | undefined): ContainerState {
  return stateNames.get(state ?? 0) ?? 'unknown';
}

export function fromContainer(message: Fields<typeof ContainerMessage>): Container {
  const { name = '', attempt = 0 } = message.metadata ?? {};
  return {
    id: message.id ?? '',
    sandboxId: message.podSandboxId ?? '',
    metadata: { name, attempt },
    image: ownDataOf(message.annotations).image ?? message.image?.image ?? '',
    imageId: message.imageId || message.imageRef || '',
    state: containerState(message.state),
    createdAt: message.createdAt ?? 0,
    labels: message.labels ?? {},
    annotations: withoutOwnAnnotations(message.annotations),
  };
}

/** `info` is the daemon-specific information of a verbose response. */
export function fromContainerStatus(
  message: Fields<typeof ContainerStatusMessage>,
  info: TextMap | undefined,
): Omit<ContainerStatus, 'sandboxId'> & { readonly sandboxId: string | undefined } {
  const { sandboxId: _, ...container } = fromContainer(message);
  const own = recordOf(info?.['info']);
  const { state } = container;
  const exited = state === 'exited';
  // containerd reports `Unknown` for a container that ended while containerd was not running.
  const lost = exited && (message.reason === 'Unknown' || message.reason === ExitReason.Lost);
  const exitCode = lost ? unknownExitCode : (message.exitCode ?? 0);
  const pid = own['pid'];
  const sandboxId = own['sandboxID'];
  const startError = exited && message.reason === 'StartError';
  const startedAt = startError ? undefined : message.startedAt || undefined;
  // containerd takes the time of the start when the call returns: a short container may have ended before.
  const finishedAt = Math.max(message.finishedAt ?? 0, startedAt ?? 0);
  return {
    ...container,
    sandboxId: typeof sandboxId === 'string' ? sandboxId : undefined,
    ...(startedAt !== undefined && { startedAt }),
    ...(exited && { finishedAt, exitCode, ...(!lost && signalOf(exitCode)) }),
    ...(message.reason && { reason: lost ? ExitReason.Lost : message.reason }),
    ...(message.message && { message: message.message }),
    mounts: (message.mounts ?? []).map(fromMount),
    ...(message.logPath && { logPath: message.logPath }),
    resources: message.resources?.linux ? fromResources(message.resources.linux) : resourcesOfSpec(own['runtimeSpec']),
    ...(state === 'running' && typeof pid === 'number' && pid > 0 && { pid }),
  };
}

/** Derives the signal from the exit code, because CRI reports no signals. */
function signalOf(exitCode: number): { signal?: string } {
  const signal = signalNames.get(exitCode - 128);
  return signal === undefined ? {} : { signal };
}

function fromMount(message: Fields<typeof MountMessage>): Mount {
  const { propagation = MountPropagation.private } = message;
  const name = (Object.keys(MountPropagation) as (keyof typeof MountPropagation)[]).find(
    (key) => MountPropagation[key] === propagation,
  );
  return {
    containerPath: message.containerPath ?? '',
    hostPath: message.hostPath ?? '',
    ...(message.readonly && { readonly: true }),
    ...(name !== undefined && name !== 'private' && { propagation: name }),
    ...(message.selinuxRelabel && { selinuxRelabel: true }),
  };
}

export function fromImage(message: Fields<typeof ImageMessage>, config: ImageConfig): Image {
  return {
    id: message.id ?? '',
    repoTags: message.repoTags ?? [],
    repoDigests: message.repoDigests ?? [],
    sizeBytes: Number(message.size ?? 0n),
    ...(message.uid && { uid: message.uid.value ?? 0 }),
    ...(message.username && { username: message.username }),
    pinned: message.pinned ?? false,
    config,
  };
}

/** Reads the configuration of an image from a verbose status, which contains an OCI image specification. */
export function imageConfigOf(info: TextMap | undefined): ImageConfig {
  const { imageSpec } = recordOf(info?.['info']);
  const config = isJsonObject(imageSpec) && isJsonObject(imageSpec['config']) ? imageSpec['config'] : {};
  const { User, Env, Entrypoint, Cmd, WorkingDir, StopSignal, Labels, Volumes } = config;
  return {
    ...(isText(User) && { user: User }),
    ...(isTexts(Env) && { env: Env }),
    ...(isTexts(Entrypoint) && { entrypoint: Entrypoint }),
    ...(isTexts(Cmd) && { cmd: Cmd }),
    ...(isText(WorkingDir) && { workingDir: WorkingDir }),
    ...(isText(StopSignal) && { stopSignal: StopSignal }),
    ...(isJsonObject(Labels) && {
      labels: Object.fromEntries(Object.entries(Labels).map(([key, value]) => [key, String(value)])),
    }),
    ...(isJsonObject(Volumes) && { volumes: Object.keys(Volumes) }),
  };
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');

export function sandboxState(state: number | undefined): SandboxState {
  return (state ?? 0) === SandboxStateNumber.ready ? 'ready' : 'notReady';
}

export function fromSandbox(message: Fields<typeof PodSandboxMessage>): PodSandbox {
  const { name = '', namespace = '', uid = '', attempt = 0 } = message.metadata ?? {};
  return {
    id: message.id ?? '',
    metadata: { name, namespace, uid, attempt },
    state: sandboxState(message.state),
    createdAt: message.createdAt ?? 0,
    labels: message.labels ?? {},
    annotations: withoutOwnAnnotations(message.annotations),
  };
}

/** `nodeIp` returns the address of pods that use the machine's network, which daemons do not report. */
export function fromSandboxStatus(
  message: Fields<typeof PodSandboxStatusMessage>,
  nodeIp: () => string,
): PodSandboxStatus {
  const sandbox = fromSandbox(message);
  const namespaces = fromNamespaces(message.linux?.namespaces?.options ?? {});
  const { ip = '', additionalIps = [] } = message.network ?? {};
  const own = [ip, ...additionalIps.map((entry) => entry.ip ?? '')].filter((address) => address !== '');
  const onNode = namespaces.network === 'node' && own.length === 0 && sandbox.state === 'ready';
  // The addresses of a stopped sandbox are released, even if the daemon still reports them.
  const ips = sandbox.state === 'ready' ? (onNode ? [nodeIp()] : own) : [];
  return { ...sandbox, ips, namespaces };
}

/** Statistics of a container; undefined when the daemon reports no usage, because the container does not run. */
export function fromStats(
  message: Fields<typeof ContainerStatsMessage>,
  sandboxId: string,
): ContainerStats | undefined {
  const { attributes = {}, cpu, memory, writableLayer } = message;
  if (cpu === undefined && memory === undefined) return undefined;
  const { name = '', attempt = 0 } = attributes.metadata ?? {};
  const inodes = writableLayer?.inodesUsed?.value;
  return {
    id: attributes.id ?? '',
    sandboxId,
    metadata: { name, attempt },
    labels: attributes.labels ?? {},
    annotations: withoutOwnAnnotations(attributes.annotations),
    timestamp: cpu?.timestamp ?? memory?.timestamp ?? 0,
    ...(cpu?.usageCoreNanoSeconds && { cpu: { usageCoreNanoseconds: cpu.usageCoreNanoSeconds.value ?? 0n } }),
    ...(memory?.workingSetBytes && { memory: fromMemory(memory) }),
    ...(writableLayer?.usedBytes && {
      writableLayer: {
        usedBytes: Number(writableLayer.usedBytes.value ?? 0n),
        ...(inodes !== undefined && { inodesUsed: Number(inodes) }),
      },
    }),
  };
}

type MemoryMessage = NonNullable<Fields<typeof ContainerStatsMessage>['memory']>;

function fromMemory(memory: MemoryMessage): NonNullable<ContainerStats['memory']> {
  const { workingSetBytes, rssBytes, usageBytes, pageFaults, majorPageFaults } = memory;
  return {
    workingSetBytes: Number(workingSetBytes?.value ?? 0n),
    ...(rssBytes && { rssBytes: Number(rssBytes.value ?? 0n) }),
    ...(usageBytes && { usageBytes: Number(usageBytes.value ?? 0n) }),
    ...(pageFaults && { pageFaults: pageFaults.value ?? 0n }),
    ...(majorPageFaults && { majorPageFaults: majorPageFaults.value ?? 0n }),
  };
}

/** CRI reports the usage of a file system but not its size, which the caller determines. */
export function fromFilesystem(
  message: Fields<typeof FilesystemUsageMessage>,
  size: { readonly capacityBytes: number; readonly availableBytes: number },
): FilesystemUsage {
  const inodes = message.inodesUsed?.value;
  return {
    timestamp: message.timestamp ?? 0,
    mountpoint: message.fsId?.mountpoint ?? '',
    usedBytes: Number(message.usedBytes?.value ?? 0n),
    ...(inodes !== undefined && { inodesUsed: Number(inodes) }),
    ...size,
  };
}
