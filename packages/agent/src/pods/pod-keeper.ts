import type { ContainerRuntime } from '@keelson/container-runtime';
import type { Pod } from '@keelson/kinds';
import type { AgentPaths } from '../base/agent-paths.ts';
import { isStaticPod } from '../base/pod/pod-spec.ts';
import type { PodCgroups } from '../machine/cgroups/pod-cgroups.ts';
import type { CpuManager } from '../machine/cpus/cpu-manager.ts';
import type { PodVolumes } from '../machine/volumes/pod-volumes.ts';
import { isRunning } from '../runtime-view/runtime-objects.ts';
import type { RuntimePods } from '../runtime-view/runtime-pods.ts';
import { removePodLogs, type TerminationMessages } from './containers/container-files.ts';
import { type ContainerKiller, endPodProcesses } from './containers/container-killer.ts';
import type { PodSyncer, SyncResult } from './pod-syncer.ts';
import type { PodRecord, PodWork } from './pod-workers.ts';
import type { PodProbes } from './probes/pod-probes.ts';
import type { StatusReports } from './status/status-reports.ts';

export interface PodKeeperOptions {
  readonly syncer: PodSyncer;
  readonly runtime: ContainerRuntime;
  readonly killer: ContainerKiller;
  readonly states: RuntimePods;
  readonly probes: PodProbes;
  readonly volumes: PodVolumes;
  readonly messages: TerminationMessages;
  readonly reports: StatusReports;
  readonly paths: AgentPaths;
  readonly cgroups: PodCgroups;
  readonly cpus: Pick<CpuManager, 'release'>;
  readonly callTimeoutMs: number;
}

/** The work on a pod from its first container to the removal of its last file. */
export class PodKeeper implements PodWork {
  readonly #options: PodKeeperOptions;

  constructor(options: PodKeeperOptions) {
    this.#options = options;
  }

  sync(pod: Pod, record: PodRecord, signal: AbortSignal): Promise<SyncResult> {
    return this.#options.syncer.sync(pod, record, signal);
  }

  async end(
    uid: string,
    pod: Pod | undefined,
    record: PodRecord,
    graceSeconds: number | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { states, probes, syncer, cgroups, cpus } = this.#options;
    // Probes must not act on a container that is being ended.
    probes.forget(uid);
    const state = await states.refresh(uid, signal);
    if (state !== undefined) {
      await endPodProcesses(pod, state, '', graceSeconds, this.#options, signal);
      const after = await states.refresh(uid, signal);
      if (after !== undefined && isRunning(after))
        throw new Error('a container or sandbox of the pod is still running after all were stopped');
    }
    if (pod !== undefined) await syncer.observe(pod, record, true);
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
}
