import { constants } from 'node:os';
import {
  type Container,
  type ContainerState,
  type ContainerStatus,
  ExitReason,
  type Mount,
} from '@keelson/container-runtime';
import {
  type ContainerMessage,
  ContainerStateNumber,
  type ContainerStatusMessage,
  type MountMessage,
  MountPropagation,
} from '../api/container.ts';
import type { Fields } from '../wire/message.ts';
import { noteOf } from './container-config.ts';
import { recordOf } from './is-record.ts';
import { type TextMap, withoutNotes } from './notes.ts';
import { fromResources, resourcesOfSpec } from './resources.ts';

const stateNames = new Map<number, ContainerState>(
  Object.entries(ContainerStateNumber).map(([name, number]) => [number, name as ContainerState]),
);
const signalNames = new Map<number, string>(Object.entries(constants.signals).map(([name, number]) => [number, name]));

/** Of a container whose end nobody saw. */
const lostExitCode = 137;

/** A state by its number; the protocol has one for a state that nobody knows. */
export function containerState(state: number | undefined): ContainerState {
  return stateNames.get(state ?? 0) ?? 'unknown';
}

export function fromContainer(message: Fields<typeof ContainerMessage>): Container {
  const { name = '', attempt = 0 } = message.metadata ?? {};
  return {
    id: message.id ?? '',
    sandboxId: message.podSandboxId ?? '',
    metadata: { name, attempt },
    image: noteOf(message.annotations).image ?? message.image?.image ?? '',
    imageId: message.imageId || message.imageRef || '',
    state: containerState(message.state),
    createdAt: message.createdAt ?? 0,
    labels: message.labels ?? {},
    annotations: withoutNotes(message.annotations),
  };
}

/** `info` is what the daemon tells in words of its own when asked to be verbose. */
export function fromContainerStatus(
  message: Fields<typeof ContainerStatusMessage>,
  info: TextMap | undefined,
): Omit<ContainerStatus, 'sandboxId'> & { readonly sandboxId: string | undefined } {
  const { sandboxId: _, ...container } = fromContainer(message);
  const own = recordOf(info?.['info']);
  const { state } = container;
  const exited = state === 'exited';
  // So containerd speaks of a container that ended while it did not look; the contract has a word of its own.
  const lost = exited && (message.reason === 'Unknown' || message.reason === ExitReason.Lost);
  const exitCode = lost ? lostExitCode : (message.exitCode ?? 0);
  const pid = own['pid'];
  const sandboxId = own['sandboxID'];
  const startError = exited && message.reason === 'StartError';
  return {
    ...container,
    sandboxId: typeof sandboxId === 'string' ? sandboxId : undefined,
    ...(message.startedAt && !startError && { startedAt: message.startedAt }),
    ...(exited && { finishedAt: message.finishedAt ?? 0, exitCode, ...(!lost && signalOf(exitCode)) }),
    ...(message.reason && { reason: lost ? ExitReason.Lost : message.reason }),
    ...(message.message && { message: message.message }),
    mounts: (message.mounts ?? []).map(fromMount),
    ...(message.logPath && { logPath: message.logPath }),
    resources: message.resources?.linux ? fromResources(message.resources.linux) : resourcesOfSpec(own['runtimeSpec']),
    ...(state === 'running' && typeof pid === 'number' && pid > 0 && { pid }),
  };
}

/** CRI tells codes only, and by them a signal cannot be told from an `exit` with its code. */
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
