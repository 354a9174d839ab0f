import type { Container, Pod } from '@keelson/kinds';
import { containerPolicy, initContainersOf, isSidecar, restartsAfter } from '../../base/pod/pod-spec.ts';
import { newestOf, type PodRuntimeState } from '../../runtime-view/pod-runtime-state.ts';
import { containerHash, containerNotesOf } from '../../runtime-view/runtime-labels.ts';
import type { ActionContext, ContainerKill, ContainerStart } from './pod-actions.ts';

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
