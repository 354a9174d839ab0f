import type { ContainerStatus as RuntimeContainer } from '@keelson/container-runtime';
import { formatTime } from '@keelson/core';
import type { Container, ContainerStatus, coreV1, Pod } from '@keelson/kinds';
import {
  allContainersOf,
  containerPolicy,
  ephemeralContainersOf,
  initContainersOf,
  isSidecar,
  restartsAfter,
} from '../../base/pod/pod-spec.ts';
import { newestOf, type PodRuntimeState } from '../../runtime-view/pod-runtime-state.ts';

type ContainerState = coreV1.ContainerState;

/** The waiting reason of a container, from the last attempt to start it. */
export interface WaitingReason {
  readonly reason: string;
  readonly message: string;
}

/** Facts for the status of containers, in addition to the state of the runtime. */
export interface ContainerFacts {
  readonly runtimeName: string;
  readonly waiting: ReadonlyMap<string, WaitingReason>;
  readonly ready: (status: RuntimeContainer) => boolean;
  readonly started: (status: RuntimeContainer) => boolean;
  /** Termination message of an ended container. */
  readonly message: (status: RuntimeContainer) => string | undefined;
  /** Names of an image by its id. */
  readonly imageIdText?: (id: string) => string | undefined;
}

/** Statuses of the init containers (`init` true) or the others, in the order of the specification. */
export function containerStatuses(
  pod: Pod,
  state: PodRuntimeState,
  init: boolean,
  facts: ContainerFacts,
): ContainerStatus[] {
  const initNames = new Set(initContainersOf(pod).map(({ name }) => name));
  const waitsForInit = initNames.size > 0 && !initDone(pod, state, facts);
  return allContainersOf(pod)
    .filter(({ name }) => initNames.has(name) === init)
    .map((container) => oneStatus(pod, container, init, state, facts, initReason(waitsForInit)));
}

/** Statuses of the containers that were added to the running pod. */
export function ephemeralStatuses(pod: Pod, state: PodRuntimeState, facts: ContainerFacts): ContainerStatus[] {
  return ephemeralContainersOf(pod).map((container) =>
    oneStatus(pod, container, false, state, facts, initReason(false)),
  );
}

function initReason(waitsForInit: boolean): string {
  return waitsForInit ? 'PodInitializing' : 'ContainerCreating';
}

function oneStatus(
  pod: Pod,
  container: Container,
  init: boolean,
  state: PodRuntimeState,
  facts: ContainerFacts,
  idle: string,
): ContainerStatus {
  const instances = state.containers.filter(
    ({ metadata, state: is }) => metadata.name === container.name && is !== 'created',
  );
  const [current, before] = instances;
  const waiting = facts.waiting.get(container.name);
  if (current === undefined) {
    return {
      name: container.name,
      state: { waiting: waiting ? { reason: waiting.reason, message: waiting.message } : { reason: idle } },
      lastState: {},
      ready: false,
      restartCount: 0,
      image: container.image ?? '',
      imageID: '',
      started: false,
    };
  }
  const now = stateOf(current, facts);
  const again =
    current.state === 'exited' && restartsAfter(containerPolicy(pod, container, init), current.exitCode ?? 0);
  const stalled = waiting !== undefined && again;
  const running = current.state === 'running';
  const started = running && facts.started(current);
  const succeededInit = init && !isSidecar(container) && current.state === 'exited' && current.exitCode === 0;
  return {
    name: container.name,
    state: stalled ? { waiting: { reason: waiting.reason, message: waiting.message } } : now,
    lastState: stalled ? now : before?.state === 'exited' ? stateOf(before, facts) : {},
    ready: succeededInit || (started && facts.ready(current)),
    restartCount: current.metadata.attempt,
    image: container.image ?? current.image,
    imageID: facts.imageIdText?.(current.imageId) ?? current.imageId,
    containerID: `${facts.runtimeName}://${current.id}`,
    started,
  };
}

function stateOf(status: RuntimeContainer, facts: ContainerFacts): ContainerState {
  const startedAt = status.startedAt === undefined ? undefined : timeText(status.startedAt);
  if (status.state === 'running') return { running: startedAt === undefined ? {} : { startedAt } };
  if (status.state === 'exited') {
    const message = facts.message(status) ?? status.message;
    const exitCode = status.exitCode ?? 137;
    return {
      terminated: {
        exitCode,
        reason: status.reason ?? (exitCode === 0 ? 'Completed' : 'Error'),
        ...(message ? { message } : {}),
        ...(startedAt === undefined ? {} : { startedAt }),
        ...(status.finishedAt === undefined ? {} : { finishedAt: timeText(status.finishedAt) }),
        containerID: `${facts.runtimeName}://${status.id}`,
      },
    };
  }
  return {
    waiting: { reason: 'ContainerStatusUnknown', message: 'the runtime does not know the state of the container' },
  };
}

/** True when the init containers of the current sandbox have completed, or main containers have started. */
export function initDone(pod: Pod, state: PodRuntimeState, facts: Pick<ContainerFacts, 'started'>): boolean {
  const sandbox = state.sandboxes[0];
  if ((pod.spec.containers ?? []).some(({ name }) => newestOf(state, name, sandbox?.id) !== undefined)) return true;
  return initContainersOf(pod).every((container) => {
    const status = newestOf(state, container.name, sandbox?.id);
    if (status === undefined) return false;
    return isSidecar(container)
      ? status.state === 'running' && facts.started(status)
      : status.state === 'exited' && status.exitCode === 0;
  });
}

function timeText(ms: number): string {
  return formatTime(new Date(ms));
}
