import type { ContainerStatus } from '@keelson/container-runtime';
import { timeMs } from '@keelson/core';
import type { Clock } from '@keelson/core/runtime';
import type { Container, Pod } from '@keelson/kinds';
import type { PodEvents } from '../../base/events/event-recorder.ts';
import { allContainersOf, uidOf } from '../../base/pod/pod-spec.ts';
import type { PodRuntimeState } from '../../runtime-view/runtime-objects.ts';
import { type ProbeKind, ProbeWorker } from './probe-worker.ts';
import type { Probing } from './prober.ts';

export interface PodProbesOptions {
  /** Runs one probe of a container. */
  readonly run: Probing;
  readonly clock: Clock;
  readonly events: PodEvents;
  /** Called when the result of a probe has changed, so that the pod must be synced. */
  readonly onChange: (uid: string) => void;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
}

interface Probed {
  readonly uid: string;
  readonly container: Container;
  readonly workers: Map<ProbeKind, ProbeWorker>;
}

const displayNames: Readonly<Record<ProbeKind, string>> = {
  liveness: 'Liveness',
  readiness: 'Readiness',
  startup: 'Startup',
};

/** The probes of all containers that run on the node, by container id: a new instance starts with new probes. */
export class PodProbes {
  readonly #options: PodProbesOptions;
  readonly #byContainer = new Map<string, Probed>();
  readonly #pods = new Map<string, Pod>();
  readonly #ips = new Map<string, string | undefined>();

  constructor(options: PodProbesOptions) {
    this.#options = options;
  }

  /** Starts and stops probes so that exactly the running containers of the pod are probed. */
  sync(pod: Pod, state: PodRuntimeState): void {
    const uid = uidOf(pod);
    this.#pods.set(uid, pod);
    this.#ips.set(uid, state.sandboxes[0]?.ips[0]);
    const running = new Map(
      state.containers.filter((status) => status.state === 'running').map((status) => [status.id, status]),
    );
    for (const [id, probed] of this.#byContainer) if (probed.uid === uid && !running.has(id)) this.#end(id);
    for (const container of allContainersOf(pod)) {
      for (const status of running.values())
        if (status.metadata.name === container.name) this.#begin(pod, container, status);
    }
  }

  /** Ends all probes of a pod. */
  forget(uid: string): void {
    for (const [id, probed] of this.#byContainer) if (probed.uid === uid) this.#end(id);
    this.#pods.delete(uid);
    this.#ips.delete(uid);
  }

  stop(): void {
    for (const id of [...this.#byContainer.keys()]) this.#end(id);
  }

  /** The failed probe because of which the container has to be ended. */
  failed(status: ContainerStatus): 'liveness' | 'startup' | undefined {
    const workers = this.#byContainer.get(status.id)?.workers;
    if (workers?.get('startup')?.verdict === false) return 'startup';
    return workers?.get('liveness')?.verdict === false ? 'liveness' : undefined;
  }

  started(status: ContainerStatus): boolean {
    if (status.state !== 'running') return false;
    const probed = this.#byContainer.get(status.id);
    return probed?.container.startupProbe ? probed.workers.get('startup')?.verdict === true : true;
  }

  ready(status: ContainerStatus): boolean {
    const probed = this.#byContainer.get(status.id);
    if (!probed?.container.readinessProbe) return this.started(status);
    return this.started(status) && probed.workers.get('readiness')?.verdict === true;
  }

  #begin(pod: Pod, container: Container, status: ContainerStatus): void {
    const { startupProbe, livenessProbe, readinessProbe } = container;
    if (!startupProbe && !livenessProbe && !readinessProbe) return;
    let probed = this.#byContainer.get(status.id);
    if (probed === undefined) {
      probed = { uid: uidOf(pod), container, workers: new Map() };
      this.#byContainer.set(status.id, probed);
      if (startupProbe) this.#work(pod, probed, status, 'startup');
    }
    if (startupProbe && probed.workers.get('startup')?.verdict !== true) return;
    if (livenessProbe && !probed.workers.has('liveness')) this.#work(pod, probed, status, 'liveness');
    if (readinessProbe && !probed.workers.has('readiness')) this.#work(pod, probed, status, 'readiness');
  }

  #work(pod: Pod, probed: Probed, status: ContainerStatus, kind: ProbeKind): void {
    const { run, clock, events, onChange, random } = this.#options;
    const { container, uid } = probed;
    const probe = container[`${kind}Probe`];
    if (!probe) return;
    const before = reported(pod, status);
    // The result of an earlier agent for the same instance remains valid until the first probe, so that the status does
    // not change when the agent restarts.
    const known = kind === 'readiness' ? before?.ready === true : kind === 'liveness';
    const worker = new ProbeWorker({
      kind,
      probe,
      containerStartedMs: status.startedAt ?? status.createdAt,
      offsetMs: before === undefined ? 0 : random() * (probe.periodSeconds ?? 10) * 1000,
      initially: known,
      run: () => run(probe, container, status, this.#ips.get(uid)),
      onFailure: (output) =>
        events.record(
          this.#pods.get(uid) ?? pod,
          'Warning',
          'Unhealthy',
          `${displayNames[kind]} probe failed: ${output}`,
          container.name,
        ),
      onChange: () => onChange(uid),
      clock,
    });
    probed.workers.set(kind, worker);
    worker.start();
  }

  #end(id: string): void {
    for (const worker of this.#byContainer.get(id)?.workers.values() ?? []) worker.stop();
    this.#byContainer.delete(id);
  }
}

function reported(pod: Pod, status: ContainerStatus): { readonly ready: boolean } | undefined {
  const all = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];
  return all.find(({ containerID, state }) => {
    if (!containerID?.endsWith(`://${status.id}`)) return false;
    const startedMs = timeMs(state?.running?.startedAt ?? '');
    return startedMs === undefined || status.startedAt === undefined || Math.abs(startedMs - status.startedAt) < 2000;
  });
}
