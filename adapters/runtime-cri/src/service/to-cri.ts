import {
  type Container,
  type ContainerRuntime,
  type ContainerStats,
  type ContainerStatus,
  type FilesystemUsage,
  type Image,
  type ImageAuth,
  type PodSandbox,
  type PodSandboxStatus,
  RuntimeError,
  type RuntimeEvent,
} from '@keelson/container-runtime';
import type { FilesystemUsageMessage } from '../api/common.ts';
import {
  type ContainerMessage,
  ContainerStateNumber,
  type ContainerStatusMessage,
  MountPropagation,
} from '../api/container.ts';
import type { ImageMessage, PullImageRequest } from '../api/image.ts';
import { type PodSandboxMessage, type PodSandboxStatusMessage, SandboxStateNumber } from '../api/sandbox.ts';
import { ContainerEventResponse, type ContainerStatsMessage } from '../api/stats.ts';
import { toNamespaces, toResources } from '../convert/to-cri.ts';
import type { Fields } from '../wire/message.ts';

/** Converts a container to an item of a list. */
export function toContainer(container: Container): Fields<typeof ContainerMessage> {
  const { id, sandboxId, metadata, image, imageId, createdAt, labels, annotations } = container;
  return {
    id,
    podSandboxId: sandboxId,
    metadata,
    image: { image },
    imageRef: imageId,
    imageId,
    state: ContainerStateNumber[container.state],
    createdAt,
    labels,
    annotations,
  };
}

/** Converts the status of a container. */
export function toContainerStatus(status: ContainerStatus): Fields<typeof ContainerStatusMessage> {
  const { id, metadata, image, imageId, createdAt, labels, annotations, logPath, reason } = status;
  return {
    id,
    metadata,
    state: ContainerStateNumber[status.state],
    createdAt,
    startedAt: status.startedAt,
    finishedAt: status.finishedAt,
    exitCode: status.exitCode,
    image: { image },
    imageRef: imageId,
    imageId,
    reason,
    message: status.message,
    labels,
    annotations,
    mounts: status.mounts.map(({ propagation = 'private', ...mount }) => ({
      ...mount,
      propagation: MountPropagation[propagation],
    })),
    logPath,
    resources: { linux: toResources(status.resources, true) },
  };
}

/** Status fields outside of CRI, in the form of containerd's `info`. */
export function containerInfo({ sandboxId, pid }: ContainerStatus): Readonly<Record<string, string>> {
  return { info: JSON.stringify({ sandboxID: sandboxId, pid: pid ?? 0 }) };
}

export function toImage(image: Image): Fields<typeof ImageMessage> {
  const { id, repoTags, repoDigests, sizeBytes, uid, username, pinned } = image;
  return {
    id,
    repoTags,
    repoDigests,
    size: BigInt(sizeBytes),
    uid: uid === undefined ? undefined : { value: uid },
    username,
    pinned,
  };
}

/** The configuration of an image as an OCI image specification, in the form of containerd's `info`. */
export function imageInfo({ config }: Image): Readonly<Record<string, string>> {
  const { user, env, entrypoint, cmd, workingDir, stopSignal, labels, volumes } = config;
  const imageSpec = {
    config: {
      User: user,
      Env: env,
      Entrypoint: entrypoint,
      Cmd: cmd,
      WorkingDir: workingDir,
      StopSignal: stopSignal,
      Labels: labels,
      Volumes: volumes && Object.fromEntries(volumes.map((path) => [path, {}])),
    },
  };
  return { info: JSON.stringify({ imageSpec }) };
}

type AuthMessage = NonNullable<Fields<typeof PullImageRequest>['auth']>;

/** Credentials of a pull; undefined when the message contains none. */
export function fromAuth(message: AuthMessage): ImageAuth | undefined {
  const { registryToken, identityToken, serverAddress, auth } = message;
  const [, user, secret] = auth ? (/^([^:]*):(.*)$/s.exec(Buffer.from(auth, 'base64').toString('utf8')) ?? []) : [];
  const { username = user, password = secret } = message;
  const credentials = {
    ...(registryToken && { registryToken }),
    ...(identityToken && { identityToken }),
    ...(username && { username }),
    ...(password && { password }),
  };
  if (Object.keys(credentials).length === 0) return undefined;
  return { ...credentials, ...(serverAddress && { serverAddress }) };
}

/** Converts a sandbox to an item of a list. */
export function toSandbox(sandbox: PodSandbox): Fields<typeof PodSandboxMessage> {
  const { id, metadata, createdAt, labels, annotations } = sandbox;
  return { id, metadata, state: SandboxStateNumber[sandbox.state], createdAt, labels, annotations };
}

/** Converts the status of a sandbox. */
export function toSandboxStatus(status: PodSandboxStatus): Fields<typeof PodSandboxStatusMessage> {
  const [ip, ...others] = status.ips;
  return {
    ...toSandbox(status),
    network: { ip, additionalIps: others.map((other) => ({ ip: other })) },
    linux: { namespaces: { options: toNamespaces(status.namespaces) } },
  };
}

/** Absent numbers are omitted from the message. */
const wrapped = (value: number | bigint | undefined) => (value === undefined ? undefined : { value: BigInt(value) });

export function toStats(stats: ContainerStats): Fields<typeof ContainerStatsMessage> {
  const { id, metadata, labels, annotations, timestamp, cpu, memory, writableLayer } = stats;
  return {
    attributes: { id, metadata, labels, annotations },
    cpu: cpu && { timestamp, usageCoreNanoSeconds: { value: cpu.usageCoreNanoseconds } },
    memory: memory && {
      timestamp,
      workingSetBytes: wrapped(memory.workingSetBytes),
      usageBytes: wrapped(memory.usageBytes),
      rssBytes: wrapped(memory.rssBytes),
      pageFaults: wrapped(memory.pageFaults),
      majorPageFaults: wrapped(memory.majorPageFaults),
    },
    writableLayer: writableLayer && {
      timestamp,
      usedBytes: wrapped(writableLayer.usedBytes),
      inodesUsed: wrapped(writableLayer.inodesUsed),
    },
  };
}

export function toFilesystem(usage: FilesystemUsage): Fields<typeof FilesystemUsageMessage> {
  const { timestamp, mountpoint, usedBytes, inodesUsed } = usage;
  return { timestamp, fsId: { mountpoint }, usedBytes: wrapped(usedBytes), inodesUsed: wrapped(inodesUsed) };
}

type EventMessage = Fields<typeof ContainerEventResponse>;
type Change = Exclude<RuntimeEvent, { type: 'resync' }>;

/** CRI has no events of sandboxes: they are sent as events of a sandbox container with the id of the sandbox. */
const numbers: Readonly<Record<Change['type'], number>> = {
  containerCreated: 0,
  containerStarted: 1,
  containerExited: 2,
  containerRemoved: 3,
  sandboxReady: 1,
  sandboxNotReady: 2,
  sandboxRemoved: 3,
};

/**
 * Converts the events of the engine. CRI has no event for missed events, so the stream fails in that case. A client
 * that opens the stream again must also list again.
 *
 * @throws `Unsupported` for an engine without events, `Unavailable`
 */
export async function* eventMessages(runtime: ContainerRuntime, signal: AbortSignal): AsyncIterable<Buffer> {
  if (runtime.events === undefined)
    throw new RuntimeError('Unsupported', `the runtime ${runtime.name} does not support events`);
  let started = false;
  for await (const event of runtime.events({ signal })) {
    if (event.type !== 'resync') yield ContainerEventResponse.encode(await messageOf(runtime, event, signal));
    else if (started) throw new RuntimeError('Unavailable', 'events were missed');
    started = true;
  }
}

async function messageOf(runtime: ContainerRuntime, event: Change, signal: AbortSignal): Promise<EventMessage> {
  const { type, sandboxId, at } = event;
  // The sandbox may have been removed meanwhile; the event then contains only its id.
  const status = await runtime.podSandboxStatus(sandboxId, { signal }).catch(() => undefined);
  return {
    containerId: 'containerId' in event ? event.containerId : sandboxId,
    containerEventType: numbers[type],
    createdAt: at,
    podSandboxStatus: status === undefined ? { id: sandboxId } : toSandboxStatus(status),
  };
}
