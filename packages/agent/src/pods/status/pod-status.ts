import type { ContainerStatus as RuntimeContainer } from '@keelson/container-runtime';
import { formatTime } from '@keelson/core';
import {
  type Container,
  type ContainerStatus,
  type coreV1,
  type Pod,
  type PodCondition,
  type PodStatus,
  qosClassOf,
} from '@keelson/kinds';
import {
  allContainersOf,
  containerPolicy,
  ephemeralContainersOf,
  initContainersOf,
  isFinalPhase,
  isSidecar,
  restartPolicyOf,
  restartsAfter,
} from '../../base/pod/pod-spec.ts';
import { newestOf, type PodRuntimeState } from '../../runtime-view/runtime-objects.ts';

/** A phase that does not follow from the containers: the pod was rejected, or exceeded its deadline. */
export interface PodVerdict {
  readonly phase: 'Failed' | 'Pending';
  readonly reason: string;
  readonly message: string;
}

export interface StatusFacts extends ContainerFacts {
  /** The last reported status of the pod. */
  readonly before: PodStatus;
  readonly verdict?: PodVerdict | undefined;
  readonly hostIps: readonly string[];
  readonly nowMs: number;
}

/** The status of a pod, from the state of the runtime and the previous status. A final phase never changes. */
export function podStatus(pod: Pod, state: PodRuntimeState, facts: StatusFacts): PodStatus {
  const { before, verdict, hostIps, nowMs } = facts;
  const final = isFinalPhase(before.phase) ? (before.phase as PodPhase) : undefined;
  // The containers of an ended pod may be removed before the pod, for example after an eviction: the previous statuses
  // of its containers remain.
  const kept = final !== undefined && state.containers.length === 0 && hasEnded(before);
  const init = (kept && before.initContainerStatuses) || containerStatuses(pod, state, true, facts);
  const main = (kept && before.containerStatuses) || containerStatuses(pod, state, false, facts);
  const added = (kept && before.ephemeralContainerStatuses) || ephemeralStatuses(pod, state, facts);
  const phase = final ?? verdict?.phase ?? podPhase(pod, init, main);
  const cause = final === undefined ? verdict : before.reason === undefined ? undefined : before;
  // As in kubelet: otherwise clients would show ContainerCreating for a rejected pod instead of the reason.
  const isRefused =
    phase === 'Failed' && state.containers.length === 0 && [...init, ...main, ...added].every(neverExisted);
  const ips = podIps(pod, state, hostIps, before);
  return {
    ...observedGenerationOf(pod),
    phase,
    conditions: podConditions(pod, { phase, init, main, before: before.conditions ?? [], nowMs }),
    ...(cause?.reason === undefined ? {} : { reason: cause.reason }),
    ...(cause?.message === undefined ? {} : { message: cause.message }),
    ...(hostIps[0] === undefined ? {} : { hostIP: hostIps[0], hostIPs: hostIps.map((ip) => ({ ip })) }),
    ...(ips[0] === undefined ? {} : { podIP: ips[0], podIPs: ips.map((ip) => ({ ip })) }),
    startTime: before.startTime ?? formatTime(new Date(nowMs)),
    ...(init.length === 0 || isRefused ? {} : { initContainerStatuses: init }),
    ...(isRefused ? {} : { containerStatuses: main }),
    ...(added.length === 0 || isRefused ? {} : { ephemeralContainerStatuses: added }),
    // The API server does not accept another class than the one it has determined.
    qosClass: before.qosClass ?? qosClassOf(pod.spec),
  };
}

/** The generation that a status or condition is about; absent for pods that are not from an API server. */
function observedGenerationOf({ metadata }: Pod): { readonly observedGeneration?: number } {
  return metadata?.generation === undefined ? {} : { observedGeneration: metadata.generation };
}

function neverExisted({ containerID, lastState }: ContainerStatus): boolean {
  return !containerID && lastState?.terminated === undefined;
}

function hasEnded({
  containerStatuses = [],
  initContainerStatuses = [],
  ephemeralContainerStatuses = [],
}: PodStatus): boolean {
  return [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses].every(
    ({ state }) => state?.running === undefined,
  );
}

/** Addresses of the newest sandbox; an ended pod retains its last ones. */
function podIps(pod: Pod, state: PodRuntimeState, hostIps: readonly string[], before: PodStatus): readonly string[] {
  const sandbox = state.sandboxes[0];
  if (sandbox?.state === 'ready') {
    if (pod.spec.hostNetwork === true && hostIps.length > 0) return hostIps;
    const ips = sandbox.ips.length > 0 ? sandbox.ips : sandbox.namespaces.network === 'node' ? hostIps : [];
    if (ips.length > 0) return ips;
  }
  return (before.podIPs ?? []).flatMap(({ ip }) => (ip ? [ip] : []));
}

export type PodPhase = 'Pending' | 'Running' | 'Succeeded' | 'Failed';

/** The phase that follows from the states of the containers: see docs/reference/agent-rules.md#phase-of-a-pod. */
export function podPhase(pod: Pod, init: readonly ContainerStatus[], main: readonly ContainerStatus[]): PodPhase {
  const policy = restartPolicyOf(pod);
  let pendingInit = false;
  for (const container of initContainersOf(pod)) {
    const status = init.find(({ name }) => name === container.name);
    if (isSidecar(container)) {
      if (status?.started !== true) pendingInit = true;
      continue;
    }
    const ended = status?.state?.terminated ?? (status?.state?.running ? undefined : status?.lastState?.terminated);
    if (ended === undefined) pendingInit = true;
    else if (ended.exitCode !== 0) {
      if ((container.restartPolicy ?? policy) === 'Never') return 'Failed';
      pendingInit = true;
    }
  }
  const counts = { running: 0, waiting: 0, stopped: 0, succeeded: 0 };
  for (const container of pod.spec.containers ?? []) {
    const status = main.find(({ name }) => name === container.name);
    const ended = status?.state?.terminated ?? status?.lastState?.terminated;
    if (status?.state?.running) counts.running += 1;
    else if (ended) {
      counts.stopped += 1;
      if (ended.exitCode === 0) counts.succeeded += 1;
    } else counts.waiting += 1;
  }
  const begun = counts.running + counts.stopped > 0;
  if (pendingInit && !begun) return 'Pending';
  if (counts.waiting > 0) return 'Pending';
  if (counts.running > 0) return 'Running';
  if (policy === 'Always') return 'Running';
  if (counts.stopped === counts.succeeded) return 'Succeeded';
  return policy === 'Never' ? 'Failed' : 'Running';
}

type Finding = Pick<PodCondition, 'type' | 'status'> & { readonly reason?: string; readonly message?: string };

/** Conditions that the agent owns. */
export const agentConditions = ['Initialized', 'Ready', 'ContainersReady', 'PodScheduled'] as const;

export interface ConditionFacts {
  readonly phase: PodPhase;
  readonly init: readonly ContainerStatus[];
  readonly main: readonly ContainerStatus[];
  /** The previous conditions; readiness gates are read from those of other owners. */
  readonly before: readonly PodCondition[];
  readonly nowMs: number;
}

/** The agent's conditions of a pod; a transition time changes only with the status of its condition. */
export function podConditions(pod: Pod, facts: ConditionFacts): PodCondition[] {
  const containers = containersReady(pod, facts);
  const findings: Finding[] = [
    initialized(pod, facts),
    ready(pod, facts, containers),
    { ...containers, type: 'ContainersReady' },
    { type: 'PodScheduled', status: 'True' },
  ];
  return findings.map((finding) => {
    const old = facts.before.find(({ type }) => type === finding.type);
    const kept = old?.status === finding.status ? old.lastTransitionTime : undefined;
    return { ...finding, ...observedGenerationOf(pod), lastTransitionTime: kept ?? formatTime(new Date(facts.nowMs)) };
  });
}

function initialized(pod: Pod, { phase, init, main }: ConditionFacts): Finding {
  const type = 'Initialized';
  const missing = initContainersOf(pod).filter((container) => {
    const status = init.find(({ name }) => name === container.name);
    return isSidecar(container) ? status?.started !== true : status?.ready !== true;
  });
  const begun = main.some(({ state, lastState }) => state?.running || state?.terminated || lastState?.terminated);
  if (phase === 'Succeeded') return { type, status: 'True', reason: 'PodCompleted' };
  if (missing.length === 0 || begun) return { type, status: 'True' };
  return {
    type,
    status: 'False',
    reason: 'ContainersNotInitialized',
    message: `containers with incomplete status: [${missing.map(({ name }) => name).join(' ')}]`,
  };
}

function containersReady(pod: Pod, { phase, main }: ConditionFacts): Finding {
  const type = 'ContainersReady';
  if (phase === 'Succeeded') return { type, status: 'False', reason: 'PodCompleted' };
  if (phase === 'Failed') return { type, status: 'False', reason: 'PodFailed' };
  const names = (pod.spec.containers ?? []).map(({ name }) => name);
  const unknown = names.filter((name) => !main.some((status) => status.name === name));
  const unready = names.filter((name) => main.some((status) => status.name === name && !status.ready));
  if (unknown.length + unready.length === 0) return { type, status: 'True' };
  const parts = [
    ...(unknown.length > 0 ? [`containers with unknown status: [${unknown.join(' ')}]`] : []),
    ...(unready.length > 0 ? [`containers with unready status: [${unready.join(' ')}]`] : []),
  ];
  return { type, status: 'False', reason: 'ContainersNotReady', message: parts.join(', ') };
}

function ready(pod: Pod, facts: ConditionFacts, containers: Finding): Finding {
  const type = 'Ready';
  if (containers.status !== 'True') return { ...containers, type };
  const closed: string[] = [];
  for (const { conditionType } of pod.spec.readinessGates ?? []) {
    const gate = facts.before.find((condition) => condition.type === conditionType);
    if (gate?.status !== 'True') closed.push(`the status of pod readiness gate "${conditionType}" is not "True"`);
  }
  return closed.length === 0
    ? { type, status: 'True' }
    : { type, status: 'False', reason: 'ReadinessGatesNotReady', message: closed.join(', ') };
}

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
