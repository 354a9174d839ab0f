import type { ContainerRuntime, ContainerStats } from '@keelson/container-runtime';
import type { Clock } from '@keelson/core/runtime';
import type { Pod } from '@keelson/kinds';
import {
  type ContainerUsage,
  type LogRequest,
  type PodQueries,
  PodQueryError,
  type PodUsage,
  type VolumeUsage,
} from '../base/contracts/pod-queries.ts';
import type { PodConfigReader } from '../base/contracts/pod-source.ts';
import { isMirrorPod, namedContainersOf, uidOf } from '../base/pod/pod-spec.ts';
import { logExists } from '../machine/logs/log-files.ts';
import { readLog } from '../machine/logs/read-log.ts';
import { type PodRuntimeState, podIdentityOf } from '../runtime-view/runtime-objects.ts';
import type { RuntimePods } from '../runtime-view/runtime-pods.ts';
import type { StatusReports } from './status/status-reports.ts';

export interface PodQueryReaderOptions {
  readonly config: PodConfigReader;
  readonly states: RuntimePods;
  readonly reports: StatusReports;
  readonly runtime: ContainerRuntime;
  readonly clock: Clock;
  readonly callTimeoutMs: number;
  /** Space of the volumes of a pod; undefined = not measured. */
  readonly volumesOf: (uid: string) => readonly VolumeUsage[] | undefined;
}

/** Why a container does not run yet, in the words of the kubelet. */
function waitingFor({ status }: Pod, container: string): string {
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  const reason = statuses.find(({ name }) => name === container)?.state?.waiting?.reason;
  if (reason === 'ErrImagePull') return `: image can't be pulled`;
  if (reason === 'ImagePullBackOff') return ': trying and failing to pull image';
  return reason === undefined ? ' - no logs yet' : `: ${reason}`;
}

/** Answers queries about the pods of the node from the agent's state. */
export class PodQueryReader implements PodQueries {
  readonly #options: PodQueryReaderOptions;

  constructor(options: PodQueryReaderOptions) {
    this.#options = options;
  }

  pods(): readonly Pod[] {
    const { config, reports } = this.#options;
    return config
      .pods()
      .filter((pod) => !isMirrorPod(pod))
      .map((pod) => ({ ...pod, status: reports.get(uidOf(pod)) ?? pod.status ?? {} }));
  }

  async runningPods(): Promise<readonly Pod[]> {
    const running = this.#options.states.all().map((state) => ({
      state,
      containers: state.containers.filter((container) => container.state === 'running'),
    }));
    return running
      .filter(({ containers }) => containers.length > 0)
      .map(({ state: { name, namespace, uid }, containers }) => ({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace, uid },
        spec: { containers: containers.map(({ metadata, image }) => ({ name: metadata.name, image })) },
        status: {},
      }));
  }

  async logs(request: LogRequest): Promise<AsyncIterable<Buffer>> {
    const { clock, states } = this.#options;
    const pod = this.pods().find(
      ({ metadata }) => metadata?.name === request.pod && metadata.namespace === request.namespace,
    );
    if (pod === undefined) throw new PodQueryError('NotFound', `pod "${request.pod}" does not exist`);
    if (!namedContainersOf(pod).some(({ name }) => name === request.container)) {
      throw new PodQueryError('NotFound', `container "${request.container}" not found in pod "${request.pod}"`);
    }
    const instances = (states.get(uidOf(pod))?.containers ?? []).filter(
      ({ metadata, state }) => metadata.name === request.container && state !== 'created',
    );
    const found = instances[request.previous ? 1 : 0];
    const label = `container "${request.container}" in pod "${request.pod}"`;
    if (found === undefined) {
      throw new PodQueryError(
        'Invalid',
        request.previous
          ? `previous terminated ${label} not found`
          : `${label} is waiting to start${waitingFor(pod, request.container)}`,
      );
    }
    const path = found.logPath;
    if (path === undefined || !(await logExists(path))) throw new PodQueryError('Unavailable', `${label} has no log`);
    const ended = () => states.get(uidOf(pod))?.containers.find(({ id }) => id === found.id)?.state !== 'running';
    return readLog(path, request, request.follow ? { clock, signal: request.signal, ended } : undefined);
  }

  async usage(signal?: AbortSignal): Promise<readonly PodUsage[]> {
    const { runtime, states, callTimeoutMs, volumesOf } = this.#options;
    const stats = await runtime.listContainerStats(undefined, { timeoutMs: callTimeoutMs, ...(signal && { signal }) });
    const byPod = new Map<string, ContainerStats[]>();
    for (const one of stats) {
      const uid = podIdentityOf(one.labels)?.uid;
      if (uid !== undefined) byPod.set(uid, [...(byPod.get(uid) ?? []), one]);
    }
    return states.all().flatMap((state) => {
      const containers = (byPod.get(state.uid) ?? []).map((one) => usageOf(one, state));
      const { namespace, name, uid } = state;
      if (containers.length === 0) return [];
      const volumes = volumesOf(uid);
      const startTimeMs = state.sandboxes[0]?.createdAt ?? 0;
      return [{ namespace, name, uid, startTimeMs, containers, ...(volumes && { volumes }) }];
    });
  }

  lastSyncLoopMs(): number | undefined {
    return this.#options.states.lastMs;
  }
}

function usageOf(
  { id, metadata, timestamp, cpu, memory, writableLayer }: ContainerStats,
  state: PodRuntimeState,
): ContainerUsage {
  return {
    name: metadata.name,
    startTimeMs: state.containers.find((container) => container.id === id)?.startedAt ?? 0,
    timeMs: timestamp,
    cpuNanoSeconds: Number(cpu?.usageCoreNanoseconds ?? 0n),
    memoryWorkingSetBytes: memory?.workingSetBytes ?? 0,
    ...(memory?.usageBytes === undefined ? {} : { memoryUsageBytes: memory.usageBytes }),
    ...(memory?.rssBytes === undefined ? {} : { memoryRssBytes: memory.rssBytes }),
    ...(writableLayer && { writableLayer }),
  };
}
