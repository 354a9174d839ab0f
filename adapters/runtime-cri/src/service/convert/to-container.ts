import type { Container, ContainerStatus } from '@keelson/container-runtime';
import {
  type ContainerMessage,
  ContainerStateNumber,
  type ContainerStatusMessage,
  MountPropagation,
} from '../../api/container.ts';
import { toResources } from '../../convert/resources.ts';
import type { Fields } from '../../wire/message.ts';

/** A container as lists have it. */
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

/** A container with all that the protocol has words for. */
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

/** The rest, in the words that containerd has for it. */
export function containerInfo({ sandboxId, pid }: ContainerStatus): Readonly<Record<string, string>> {
  return { info: JSON.stringify({ sandboxID: sandboxId, pid: pid ?? 0 }) };
}
