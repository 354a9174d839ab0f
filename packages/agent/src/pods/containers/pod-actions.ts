import type { ContainerStatus, PodSandboxStatus } from '@keelson/container-runtime';
import type { Container, Pod } from '@keelson/kinds';
import {
  containerPolicy,
  ephemeralContainersOf,
  initContainersOf,
  isSidecar,
  namedContainersOf,
  restartPolicyOf,
  restartsAfter,
} from '../../base/pod/pod-spec.ts';
import { containerHash, containerNotesOf, newestOf, type PodRuntimeState } from '../../runtime-view/runtime-objects.ts';

export interface ContainerStart {
  readonly container: Container;
  readonly init: boolean;
  /** Number of the new instance. */
  readonly attempt: number;
  /** The previous instance, if it has ended. */
  readonly previous: ContainerStatus | undefined;
  /** True for an ephemeral container, which was not part of the pod at admission. */
  readonly added?: true;
}

export interface ContainerKill {
  readonly status: ContainerStatus;
  readonly reason: 'changed' | 'liveness' | 'startup' | 'unknown';
  readonly message: string;
  /** Overrides the grace period of the pod, in seconds. */
  readonly graceSeconds?: number;
}

/** The actions that bring the runtime closer to the specification of a pod. */
export interface PodActions {
  /** All containers and sandboxes of the pod are ended first. */
  readonly killPod: boolean;
  /** Present: a new sandbox of this number is needed. */
  readonly sandboxAttempt: number | undefined;
  /** The sandbox in which to start, when no new one is needed. */
  readonly sandbox: PodSandboxStatus | undefined;
  readonly kill: readonly ContainerKill[];
  readonly start: readonly ContainerStart[];
}

/** Facts that decisions need in addition to the specification and the state of the runtime. */
export interface ActionContext {
  /** The runtime assigns addresses to pods: a sandbox without an address is unusable. */
  readonly podNetwork: boolean;
  /** The probe that has reached its failure threshold; undefined when there is none. */
  readonly failedProbe: (status: ContainerStatus) => 'liveness' | 'startup' | undefined;
  /** True when the container has passed its startup probe. */
  readonly started: (status: ContainerStatus) => boolean;
}

const nothing = { killPod: false, sandboxAttempt: undefined, sandbox: undefined, kill: [], start: [] } as const;

/**
 * Computes what to start and to end, without any side effect: see
 * docs/reference/agent-rules.md#sandboxes-and-containers.
 */
export function podActions(pod: Pod, state: PodRuntimeState, context: ActionContext): PodActions {
  const sandbox = usableSandbox(pod, state, context);
  if (sandbox === undefined) return inNewSandbox(pod, state);
  const init = nextInitSteps(pod, state, sandbox.id, context);
  if (init.failed) return { ...nothing, killPod: true };
  const added = ephemeralStarts(pod, state);
  if (!init.done) return { ...nothing, sandbox, kill: init.kill, start: [...init.start, ...added] };
  const kill: ContainerKill[] = [...init.kill];
  const start: ContainerStart[] = [...init.start];
  let kept = 0;
  for (const container of pod.spec.containers ?? []) {
    const decision = decide(pod, container, state, sandbox.id, context);
    if (decision.kill) kill.push(decision.kill);
    if (decision.start) start.push(decision.start);
    if (decision.kept) kept += 1;
  }
  const mainLeft = kept > 0 || start.some((next) => !next.init) || kill.some(({ status }) => !isInit(pod, status));
  return mainLeft ? { ...nothing, sandbox, kill, start: [...start, ...added] } : { ...nothing, killPod: true };
}

/** Ephemeral containers that never ran. They do not delay the end of a pod whose other containers have ended. */
function ephemeralStarts(pod: Pod, state: PodRuntimeState): ContainerStart[] {
  return ephemeralContainersOf(pod).flatMap((container) => {
    const status = newestOf(state, container.name);
    return status === undefined || status.state === 'created'
      ? [{ ...startOf(container, false, status), added: true as const }]
      : [];
  });
}

interface Decision {
  readonly kill?: ContainerKill;
  readonly start?: ContainerStart;
  readonly kept?: boolean;
}

function decide(
  pod: Pod,
  container: Container,
  state: PodRuntimeState,
  sandboxId: string,
  context: ActionContext,
): Decision {
  const status = newestOf(state, container.name);
  const policy = containerPolicy(pod, container, false);
  const start = startOf(container, false, status);
  if (status === undefined) return { start };
  if (status.state === 'exited') return restartsAfter(policy, status.exitCode ?? 0) ? { start } : {};
  // A container that was created and never started is replaced: its creator was interrupted.
  if (status.state === 'created') return { start };
  if (status.state === 'unknown' || status.sandboxId !== sandboxId) {
    return {
      kill: { status, reason: 'unknown', message: `Container ${container.name} is in an unknown state` },
      start,
    };
  }
  if (containerNotesOf(status.annotations).hash !== containerHash(container)) {
    return { kill: { status, reason: 'changed', message: `Container ${container.name} definition changed` }, start };
  }
  const failed = context.failedProbe(status);
  if (failed === undefined) return { kept: true };
  return { kill: killForProbe(container, status, failed), ...(policy === 'Never' ? {} : { start }) };
}

export function killForProbe(
  container: Container,
  status: ContainerStatus,
  failed: 'liveness' | 'startup',
): ContainerKill {
  const probe = failed === 'liveness' ? container.livenessProbe : container.startupProbe;
  const grace = probe?.terminationGracePeriodSeconds;
  return {
    status,
    reason: failed,
    message: `Container ${container.name} failed ${failed} probe`,
    ...(typeof grace === 'number' ? { graceSeconds: grace } : {}),
  };
}

export function startOf(container: Container, init: boolean, previous: ContainerStatus | undefined): ContainerStart {
  return { container, init, attempt: previous === undefined ? 0 : previous.metadata.attempt + 1, previous };
}

/** The one sandbox in which the pod's containers can run; undefined when there is none, or too many. */
function usableSandbox(pod: Pod, state: PodRuntimeState, context: ActionContext): PodSandboxStatus | undefined {
  const ready = state.sandboxes.filter((sandbox) => sandbox.state === 'ready');
  const [sandbox] = ready;
  if (sandbox === undefined || ready.length > 1) return undefined;
  const hostNetwork = pod.spec.hostNetwork === true;
  if (context.podNetwork) {
    if ((sandbox.namespaces.network === 'node') !== hostNetwork) return undefined;
    if (!hostNetwork && sandbox.ips.length === 0) return undefined;
  }
  return sandbox;
}

/** All containers start again, except those that have ended and may not be restarted. */
function inNewSandbox(pod: Pod, state: PodRuntimeState): PodActions {
  const killPod = state.sandboxes.length > 0;
  const attempt = state.sandboxes.reduce((most, { metadata }) => Math.max(most, metadata.attempt + 1), 0);
  const ended = { ...nothing, killPod };
  if (restartPolicyOf(pod) === 'Never' && attempt > 0 && state.containers.length > 0) return ended;
  const main = (pod.spec.containers ?? []).filter((container) => {
    const status = newestOf(state, container.name);
    return status?.state !== 'exited' || restartsAfter(containerPolicy(pod, container, false), status.exitCode ?? 0);
  });
  if (main.length === 0) return ended;
  const [first] = initContainersOf(pod);
  const start =
    first === undefined
      ? main.map((container) => startOf(container, false, newestOf(state, container.name)))
      : [startOf(first, true, newestOf(state, first.name))];
  return { ...nothing, killPod, sandboxAttempt: attempt, start };
}

function isInit(pod: Pod, status: ContainerStatus): boolean {
  return initContainersOf(pod).some(({ name }) => name === status.metadata.name);
}

/**
 * Ended containers that the status no longer shows: all but the newest two instances of each name, and those with
 * unknown names.
 */
export function obsoleteContainers(pod: Pod, state: PodRuntimeState): readonly ContainerStatus[] {
  const instances = new Map<string, number>(namedContainersOf(pod).map(({ name }) => [name, 0]));
  return state.containers.filter((status) => {
    const count = instances.get(status.metadata.name);
    if (count !== undefined) instances.set(status.metadata.name, count + 1);
    const old = count === undefined || count >= 2 || (status.state === 'created' && count > 0);
    return old && (status.state === 'exited' || status.state === 'created');
  });
}

export interface InitSteps {
  /** All init containers have succeeded and all sidecars have started: the main containers may run. */
  readonly done: boolean;
  /** An init container failed and may not be restarted. */
  readonly failed: boolean;
  readonly kill: readonly ContainerKill[];
  readonly start: readonly ContainerStart[];
}

/** The next steps of the init containers in this sandbox. Containers of an earlier sandbox do not count. */
export function nextInitSteps(pod: Pod, state: PodRuntimeState, sandboxId: string, context: ActionContext): InitSteps {
  const kill: ContainerKill[] = [];
  const start: ContainerStart[] = [];
  const begun = (pod.spec.containers ?? []).some(({ name }) => newestOf(state, name, sandboxId) !== undefined);
  const steps = (done: boolean, failed = false): InitSteps => ({ done, failed, kill, start });
  for (const container of initContainersOf(pod)) {
    const status = newestOf(state, container.name, sandboxId);
    const next = { container, init: true, ...instance(state, container) };
    if (isSidecar(container)) {
      const failed = status === undefined ? undefined : context.failedProbe(status);
      if (status === undefined || status.state === 'exited' || status.state === 'created') start.push(next);
      else if (failed !== undefined || containerNotesOf(status.annotations).hash !== containerHash(container)) {
        kill.push({ status, reason: failed ?? 'changed', message: sidecarMessage(container, failed) });
        start.push(next);
      } else if (context.started(status)) continue;
      // A sidecar that ended is restarted beside running main containers; before that, later init containers wait for
      // it.
      if (!begun) return steps(false);
      continue;
    }
    if (begun) continue;
    if (status === undefined || status.state === 'created') {
      start.push(next);
      return steps(false);
    }
    if (status.state === 'unknown') {
      kill.push({ status, reason: 'unknown', message: `Init container ${container.name} is in an unknown state` });
      start.push(next);
      return steps(false);
    }
    if (status.state === 'running') return steps(false);
    if (status.exitCode === 0) continue;
    if (!restartsAfter(containerPolicy(pod, container, true), status.exitCode ?? 1)) return steps(false, true);
    start.push(next);
    return steps(false);
  }
  return steps(true);
}

function instance(state: PodRuntimeState, container: Container): Pick<ContainerStart, 'attempt' | 'previous'> {
  const previous = newestOf(state, container.name);
  return { attempt: previous === undefined ? 0 : previous.metadata.attempt + 1, previous };
}

function sidecarMessage(container: Container, failed: string | undefined): string {
  return failed === undefined
    ? `Container ${container.name} definition changed`
    : `Container ${container.name} failed ${failed} probe`;
}
