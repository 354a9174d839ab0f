import type { ContainerRuntime, ContainerStatus } from '@keelson/container-runtime';
import type { Logger } from '@keelson/core/runtime';
import type { AgentPaths } from '../../base/agent-paths.ts';
import { isStaticPod } from '../../base/pod/pod-spec.ts';
import {
  removeContainer,
  removeOldSandboxes,
  type TerminationMessages,
} from '../../pods/containers/container-files.ts';
import { obsoleteContainers } from '../../pods/containers/pod-actions.ts';
import type { PodWorker, PodWorkers } from '../../pods/pod-workers.ts';
import { newestOf, type PodRuntimeState } from '../../runtime-view/runtime-objects.ts';
import type { RuntimePods } from '../../runtime-view/runtime-pods.ts';

export interface ContainerGarbageOptions {
  readonly workers: Pick<PodWorkers, 'get'>;
  readonly states: RuntimePods;
  readonly runtime: ContainerRuntime;
  readonly messages: TerminationMessages;
  readonly paths: AgentPaths;
  readonly logger: Logger;
  readonly callTimeoutMs: number;
}

/**
 * Deletes ended containers of existing pods, including finished ones: each container retains its newest instance and
 * one earlier one, and each pod its newest sandbox. Housekeeping is responsible for containers without a pod.
 */
export class ContainerGarbage {
  readonly #options: ContainerGarbageOptions;

  constructor(options: ContainerGarbageOptions) {
    this.#options = options;
  }

  round(signal: AbortSignal): Promise<void> {
    return this.#collect(
      (worker, state) => (worker.pod === undefined ? [] : obsoleteContainers(worker.pod, state)),
      signal,
    );
  }

  /**
   * For a full disk: deletes all ended containers except the newest instances of active pods and of static pods. Only
   * these instances show a later agent that the container has run.
   */
  reclaim(signal: AbortSignal): Promise<void> {
    return this.#collect((worker, state) => state.containers.filter((status) => isDead(worker, state, status)), signal);
  }

  async #collect(
    pick: (worker: PodWorker, state: PodRuntimeState) => readonly ContainerStatus[],
    signal: AbortSignal,
  ): Promise<void> {
    const { workers, states, runtime, messages, paths, logger, callTimeoutMs } = this.#options;
    const call = { signal, timeoutMs: callTimeoutMs };
    for (const state of states.all()) {
      const worker = workers.get(state.uid);
      if (worker?.pod === undefined) continue;
      const old = pick(worker, state);
      if (old.length === 0 && state.sandboxes.length <= 1) continue;
      try {
        for (const status of old) await removeContainer(state.uid, status, paths, runtime, call);
        messages.forget(old);
        await removeOldSandboxes(state, new Set(old.map(({ id }) => id)), runtime, call);
        await states.refresh(state.uid, signal);
      } catch (err) {
        if (signal.aborted) return;
        logger.warn('collecting containers of a pod failed', { component: 'container-garbage', uid: state.uid, err });
      }
    }
  }
}

function isDead(worker: PodWorker, state: PodRuntimeState, status: ContainerStatus): boolean {
  if (status.state !== 'exited') return false;
  const remembered = worker.stage === 'resting' && worker.pod !== undefined && !isStaticPod(worker.pod);
  return remembered || newestOf(state, status.metadata.name)?.id !== status.id;
}
