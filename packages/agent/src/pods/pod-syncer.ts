import { CgroupError } from '@keelson/container-host';
import { timeMs } from '@keelson/core';
import type { Clock } from '@keelson/core/runtime';
import type { Pod } from '@keelson/kinds';
import { allContainersOf, isFinalPhase, isStaticPod, uidOf } from '../base/pod/pod-spec.ts';
import type { CpuManager } from '../machine/cpus/cpu-manager.ts';
import type { PodVolumes, VolumePlaces } from '../machine/volumes/pod-volumes.ts';
import { VolumeProblem } from '../machine/volumes/volume-problem.ts';
import { emptyState, isRunning, type PodRuntimeState } from '../runtime-view/runtime-objects.ts';
import type { RuntimePods } from '../runtime-view/runtime-pods.ts';
import {
  removeContainer,
  removeOldSandboxes,
  removePodLogs,
  type TerminationMessages,
} from './containers/container-files.ts';
import { type ContainerKiller, endPodProcesses } from './containers/container-killer.ts';
import { type ContainerStarter, StartProblem } from './containers/container-starter.ts';
import { obsoleteContainers, type PodActions, podActions } from './containers/pod-actions.ts';
import { configurationRejection, ephemeralContainerRejection } from './pod-admission.ts';
import type { PodRecord, PodWork } from './pod-workers.ts';
import type { PodProbes } from './probes/pod-probes.ts';
import { SandboxProblem, StartPreparation, type StartPreparationOptions } from './start-preparation.ts';
import { agentConditions, podStatus } from './status/pod-status.ts';
import type { StatusReports } from './status/status-reports.ts';

export interface PodSyncerOptions extends StartPreparationOptions {
  readonly states: RuntimePods;
  readonly starter: ContainerStarter;
  readonly killer: ContainerKiller;
  readonly volumes: PodVolumes;
  readonly probes: PodProbes;
  readonly messages: TerminationMessages;
  readonly reports: StatusReports;
  readonly cpus: Pick<CpuManager, 'release'>;
  readonly clock: Clock;
  /** The prefix of container IDs in the status, such as `containerd`. */
  readonly runtimeName: () => string;
}

/** The result of a sync. */
export interface SyncResult {
  /** The pod has reached a final phase and has to be cleaned up. */
  readonly final: boolean;
  /** The latest time of the next sync; undefined = after the next change. */
  readonly againAfterMs: number | undefined;
}

const problemRetryMs = 10_000;

/**
 * The work on a pod from its first container to the removal of its last file. A sync brings its containers closer to
 * its spec: see docs/reference/agent-rules.md#steps-of-a-pod-sync.
 */
export class PodSyncer implements PodWork {
  readonly #options: PodSyncerOptions;
  readonly #preparation: StartPreparation;

  constructor(options: PodSyncerOptions) {
    this.#options = options;
    this.#preparation = new StartPreparation(options);
  }

  async sync(pod: Pod, record: PodRecord, signal: AbortSignal): Promise<SyncResult> {
    try {
      return await this.#sync(pod, record, signal);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (!signal.aborted && !(error instanceof SandboxProblem))
        this.#options.events.record(pod, 'Warning', 'FailedSync', `error syncing pod: ${message}`);
      throw error;
    }
  }

  /** Ends all containers and sandboxes, and releases what running containers use. */
  async end(
    uid: string,
    pod: Pod | undefined,
    record: PodRecord,
    graceSeconds: number | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { states, probes, cgroups, cpus } = this.#options;
    // Probes must not act on a container that is being ended.
    probes.forget(uid);
    const state = await states.refresh(uid, signal);
    if (state !== undefined) {
      await endPodProcesses(pod, state, '', graceSeconds, this.#options, signal);
      const after = await states.refresh(uid, signal);
      if (after !== undefined && isRunning(after))
        throw new Error('a container or sandbox of the pod is still running after all were stopped');
    }
    if (pod !== undefined) await this.#observe(pod, record, true);
    await cpus.release(uid);
    await cgroups.remove(uid);
  }

  async cleanUp(uid: string, signal: AbortSignal): Promise<void> {
    const { runtime, states, volumes, messages, callTimeoutMs, paths } = this.#options;
    const call = { signal, timeoutMs: callTimeoutMs };
    const state = await states.refresh(uid, signal);
    for (const { id } of state?.containers ?? []) await runtime.removeContainer(id, call);
    for (const { id } of state?.sandboxes ?? []) await runtime.removePodSandbox(id, call);
    messages.forget(state?.containers ?? []);
    await states.refresh(uid, signal);
    // The directory of the pod is removed last: until then housekeeping finds whatever could not be removed.
    await removePodLogs(uid, paths);
    await volumes.remove(uid);
  }

  ended(pod: Pod): void {
    if (!isStaticPod(pod)) this.#options.reports.ended(pod);
  }

  async #sync(pod: Pod, record: PodRecord, signal: AbortSignal): Promise<SyncResult> {
    const { states, messages, probes, events, config, node } = this.#options;
    const state = states.get(uidOf(pod)) ?? identityState(pod);
    await messages.load(state.containers);
    probes.sync(pod, state);
    const deadlineMs = this.#deadline(pod, record);
    const rejection = configurationRejection(pod, config);
    this.#reportStatus(pod, state, record, rejection);
    if (isFinalPhase(record.status.phase)) return { final: true, againAfterMs: undefined };
    if (rejection !== undefined) {
      if (isRunning(state)) await endPodProcesses(pod, state, rejection.message, undefined, this.#options, signal);
      return { final: false, againAfterMs: problemRetryMs };
    }
    if (!node.networkReady() && pod.spec.hostNetwork !== true && state.sandboxes.length === 0) {
      events.record(pod, 'Warning', 'NetworkNotReady', 'network is not ready: the runtime has no network for pods');
      return { final: false, againAfterMs: problemRetryMs };
    }
    if (!(await this.#hasCgroup(pod))) return { final: false, againAfterMs: problemRetryMs };
    const againMs = await this.#act(pod, state, record, signal);
    return { final: false, againAfterMs: least(deadlineMs, againMs) };
  }

  async #hasCgroup(pod: Pod): Promise<boolean> {
    const { cgroups, events } = this.#options;
    try {
      await cgroups.ensure(pod);
      return true;
    } catch (error) {
      if (!(error instanceof CgroupError)) throw error;
      events.record(
        pod,
        'Warning',
        'FailedToCreatePodContainer',
        `unable to ensure pod container exists: ${error.message}`,
      );
      return false;
    }
  }

  /** Reports the status of a pod without acting on it. */
  async #observe(pod: Pod, record: PodRecord, ending: boolean): Promise<void> {
    const state = this.#options.states.get(uidOf(pod)) ?? identityState(pod);
    await this.#options.messages.load(state.containers);
    // Containers of a pod that is being ended are not restarted, independent of the restart policy.
    const view = ending ? { ...pod, spec: { ...pod.spec, restartPolicy: 'Never' } } : pod;
    this.#reportStatus(view, state, record, undefined);
  }

  #reportStatus(pod: Pod, state: PodRuntimeState, record: PodRecord, rejection: PodRecord['verdict']): void {
    const { runtimeName, probes, messages, clock, node, reports } = this.#options;
    const waiting = rejection === undefined ? record.waiting : blocked(pod, rejection.message);
    const own: readonly string[] = agentConditions;
    const foreign = (pod.status?.conditions ?? []).filter(({ type }) => !own.includes(type));
    const known = (record.status.conditions ?? []).filter(({ type }) => own.includes(type));
    record.status = podStatus(pod, state, {
      before: { ...record.status, conditions: [...known, ...foreign] },
      verdict: record.verdict ?? rejection,
      hostIps: node.hostIps(),
      nowMs: clock.now(),
      runtimeName: runtimeName(),
      waiting,
      ready: (status) => probes.ready(status),
      started: (status) => probes.started(status),
      message: (status) => messages.of(status),
    });
    reports.set(pod, record.status);
  }

  /** Records that a pod has exceeded its deadline; otherwise returns the remaining time. */
  #deadline(pod: Pod, record: PodRecord): number | undefined {
    const seconds = pod.spec.activeDeadlineSeconds;
    const startMs = timeMs(record.status.startTime ?? '');
    if (typeof seconds !== 'number') return undefined;
    const left = (startMs ?? this.#options.clock.now()) + seconds * 1000 - this.#options.clock.now();
    if (left > 0) return left;
    const message = 'Pod was active on the node longer than the specified deadline';
    if (record.verdict === undefined) this.#options.events.record(pod, 'Normal', 'DeadlineExceeded', message);
    record.verdict ??= { phase: 'Failed', reason: 'DeadlineExceeded', message };
    return undefined;
  }

  async #act(pod: Pod, state: PodRuntimeState, record: PodRecord, signal: AbortSignal): Promise<number | undefined> {
    const { runtime, probes, states, volumes, events } = this.#options;
    const actions = podActions(pod, state, {
      podNetwork: runtime.capabilities.podNetwork,
      failedProbe: (status) => probes.failed(status),
      started: (status) => probes.started(status),
    });
    const idle = isIdle(actions) && obsoleteContainers(pod, state).length === 0 && state.sandboxes.length <= 1;
    // Contents of volumes may have changed even when no container has to be started or ended.
    if (idle && !pod.spec.volumes?.length) return undefined;
    let places: VolumePlaces;
    try {
      places = await volumes.provide(pod, this.#preparation.environment(pod, state));
    } catch (error) {
      if (!(error instanceof VolumeProblem)) throw error;
      events.record(pod, 'Warning', 'FailedMount', `MountVolume failed: ${error.message}`);
      return problemRetryMs;
    }
    if (idle) return undefined;
    let known = false;
    try {
      const againMs = await states.whileActing(uidOf(pod), () =>
        this.#carryOut(pod, state, actions, record, places, signal),
      );
      known = true;
      return againMs;
    } finally {
      // After a failure the resulting state is unknown and has to be read again.
      const readState = () => (known ? states.inspect(uidOf(pod), signal) : states.refresh(uidOf(pod), signal));
      if (!signal.aborted) await readState().catch(() => undefined);
    }
  }

  async #carryOut(
    pod: Pod,
    state: PodRuntimeState,
    actions: PodActions,
    record: PodRecord,
    places: VolumePlaces,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const { runtime, killer, events, callTimeoutMs, messages, paths } = this.#options;
    const call = { signal, timeoutMs: callTimeoutMs };
    if (actions.killPod) {
      const changed = actions.sandboxAttempt !== undefined;
      const message = changed ? 'Pod sandbox changed, it will be killed and re-created.' : 'Stopping pod';
      if (changed) events.record(pod, 'Normal', 'SandboxChanged', message);
      await endPodProcesses(pod, state, message, undefined, this.#options, signal);
      if (!changed) return undefined;
    }
    const podIp = state.sandboxes[0]?.ips[0];
    for (const { status, message, graceSeconds, reason } of actions.kill) {
      const text = reason === 'changed' ? `${message}, will be restarted` : `${message}, will be killed`;
      await killer.kill({ pod, status, message: text, graceSeconds, podIp }, signal);
    }
    const old = obsoleteContainers(pod, state);
    for (const status of old) await removeContainer(uidOf(pod), status, paths, runtime, call);
    messages.forget(old);
    await removeOldSandboxes(state, new Set(old.map(({ id }) => id)), runtime, call);
    if (actions.start.length === 0) return undefined;
    const sandbox = await this.#preparation.sandbox(pod, actions, signal).catch(async (error: unknown) => {
      if (error instanceof SandboxProblem) await this.#noSandbox(pod, actions, record, error);
      throw error;
    });
    this.#options.states.addSandbox(uidOf(pod), sandbox.sandboxId);
    const context = await this.#preparation.startContext(pod, state, sandbox, places);
    let againMs: number | undefined;
    let news = false;
    for (const start of actions.start) {
      try {
        const refused = start.added
          ? ephemeralContainerRejection(pod, start.container, this.#options.config)
          : undefined;
        if (refused !== undefined) throw new StartProblem('Blocked', refused);
        await this.#options.starter.start(pod, start, context, signal);
        news = record.waiting.delete(start.container.name) || news;
      } catch (error) {
        if (!(error instanceof StartProblem)) throw error;
        news = true;
        record.waiting.set(start.container.name, { reason: error.reason, message: error.message });
        againMs = least(againMs, error.retryAfterMs ?? problemRetryMs);
      }
    }
    // Started containers are reported after their state was read again.
    if (news) await this.#observe(pod, record, false);
    return againMs;
  }

  /** The status of the pod shows why its containers are still being created. */
  async #noSandbox(pod: Pod, { start }: PodActions, record: PodRecord, { message }: SandboxProblem): Promise<void> {
    for (const { container } of start) record.waiting.set(container.name, { reason: 'ContainerCreating', message });
    await this.#observe(pod, record, false);
  }
}

function isIdle({ killPod, sandboxAttempt, kill, start }: PodActions): boolean {
  return !killPod && sandboxAttempt === undefined && kill.length === 0 && start.length === 0;
}

function blocked(pod: Pod, message: string): PodRecord['waiting'] {
  return new Map(allContainersOf(pod).map(({ name }) => [name, { reason: 'Blocked', message }]));
}

function identityState(pod: Pod): PodRuntimeState {
  return emptyState({ uid: uidOf(pod), name: pod.metadata?.name ?? '', namespace: pod.metadata?.namespace ?? '' });
}

function least(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined ? b : b === undefined ? a : Math.min(a, b);
}
