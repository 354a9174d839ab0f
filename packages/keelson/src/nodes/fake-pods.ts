import { Informer, WorkQueue, type WorkResult } from '@keelson/client';
import { type ApiClient, formatTime, isStatusError, StatusReason } from '@keelson/core';
import type { Clock, Logger } from '@keelson/core/runtime';
import { type coreV1, Pod } from '@keelson/kinds';

export interface FakePodsOptions {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Names of the fake nodes; at most 65,536. */
  readonly nodeNames: readonly string[];
}

/** Annotation: seconds after which the containers succeed, unless the restart policy of the pod is Always. */
export const exitAfterAnnotation = 'keelson.dev/fake-exit-after-seconds';
const defaultExitAfterSeconds = 1;
const workers = 16;
const addressesPerNode = 254;

interface Kept {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly nodeName: string;
  readonly deleting: boolean;
  readonly phase: string;
  /** Time of the start in epoch milliseconds. */
  readonly startedAt: number;
  readonly ip: string;
  /** Duration until the containers succeed. Undefined: the pod runs until it is deleted. */
  readonly exitAfterMs: number | undefined;
  readonly generation: number | undefined;
  readonly init: readonly Named[];
  readonly containers: readonly Named[];
  readonly gates: readonly string[];
}

type Named = Pick<coreV1.Container, 'name' | 'image'>;

/** Reports the pods of many nodes as running, from one informer. */
export class FakePods {
  readonly #options: FakePodsOptions;
  readonly #indexOf: ReadonlyMap<string, number>;
  readonly #pods: Informer<Pod, Kept>;
  readonly #queue: WorkQueue;
  /** The last octets of pod addresses that are in use, by node. */
  readonly #octets = new Map<string, Map<string, number>>();

  constructor(options: FakePodsOptions) {
    this.#options = options;
    this.#indexOf = new Map(options.nodeNames.map((name, index) => [name, index]));
    this.#queue = new WorkQueue({ ...options, name: 'fake-nodes', workers, work: (key) => this.#sync(key) });
    const changed = (pod: Kept, key: string) => {
      if (this.#indexOf.has(pod.nodeName)) this.#queue.add(key);
    };
    this.#pods = new Informer({
      ...options,
      client: options.client.resource(Pod),
      keep,
      remember: ({ nodeName }) => this.#indexOf.has(nodeName),
      handlers: {
        added: changed,
        updated: (pod, _before, key) => changed(pod, key),
        deleted: ({ nodeName, uid }) => this.#octets.get(nodeName)?.delete(uid),
      },
    });
  }

  start(): Promise<void> {
    return this.#pods.start();
  }

  async stop(): Promise<void> {
    await this.#pods.stop();
    await this.#queue.stop();
  }

  async #sync(key: string): Promise<WorkResult> {
    const pod = this.#pods.get(key);
    if (pod === undefined) return undefined;
    const { namespace, name, uid, phase, startedAt, exitAfterMs } = pod;
    const pods = this.#options.client.resource(Pod).namespace(namespace);
    try {
      if (pod.deleting) {
        await pods.delete(name, { gracePeriodSeconds: 0, preconditions: { uid } });
        return undefined;
      }
      if (phase === 'Succeeded' || phase === 'Failed') return undefined;
      const now = this.#options.clock.now();
      if (phase !== 'Running') {
        await this.#report(pod, now, undefined);
        return exitAfterMs === undefined ? undefined : { againAfterMs: exitAfterMs };
      }
      if (exitAfterMs === undefined) return undefined;
      const remaining = startedAt + exitAfterMs - now;
      if (remaining > 0) return { againAfterMs: remaining };
      await this.#report(pod, startedAt, now);
    } catch (error) {
      // The pod has been deleted, or another pod has its name.
      if (!isStatusError(error, StatusReason.NotFound) && !isStatusError(error, StatusReason.Conflict)) throw error;
    }
    return undefined;
  }

  /** Reports the containers as running, or as succeeded since `ended`. */
  async #report(pod: Kept, started: number, ended: number | undefined): Promise<void> {
    const { client } = this.#options;
    const { namespace, name, uid, generation } = pod;
    const startTime = formatTime(new Date(started));
    const finishedAt = formatTime(new Date(ended ?? started));
    const ip = pod.ip === '' ? this.#address(pod) : pod.ip;
    const running = ended === undefined;
    const terminated = { exitCode: 0, reason: 'Completed', startedAt: startTime, finishedAt };
    const statusOf = (container: Named, isRunning: boolean): coreV1.ContainerStatus => ({
      name: container.name,
      image: container.image ?? '',
      imageID: container.image ?? '',
      containerID: `fake://${uid}/${container.name}`,
      ready: isRunning,
      started: isRunning,
      restartCount: 0,
      state: isRunning ? { running: { startedAt: startTime } } : { terminated },
    });
    const completed = running ? {} : { reason: 'PodCompleted' };
    const condition = (type: string, met: boolean): coreV1.PodCondition => ({
      type,
      status: met ? 'True' : 'False',
      lastTransitionTime: met ? startTime : finishedAt,
      ...(met ? {} : completed),
    });
    const status = {
      phase: running ? 'Running' : 'Succeeded',
      startTime,
      podIP: ip,
      podIPs: [{ ip }],
      ...(generation === undefined ? {} : { observedGeneration: generation }),
      conditions: [
        condition('PodScheduled', true),
        condition('Initialized', true),
        condition('ContainersReady', running),
        // A readiness gate is a condition that other programs set.
        condition('Ready', running && pod.gates.length === 0),
      ],
      initContainerStatuses: pod.init.map((container) => ({ ...statusOf(container, false), ready: true })),
      containerStatuses: pod.containers.map((container) => statusOf(container, running)),
    };
    const body = { metadata: { uid }, status };
    await client.resource(Pod).namespace(namespace).patchSubresource(name, 'status', 'strategic', body);
  }

  /** An address that no other pod of the node has. The networks of nodes are 10.128.0.0/24 and the following. */
  #address({ nodeName, uid }: Kept): string {
    let octets = this.#octets.get(nodeName);
    const index = this.#indexOf.get(nodeName) ?? 0;
    const network = `10.${128 + (index >> 8)}.${index & 255}.`;
    if (octets === undefined) {
      octets = new Map();
      for (const pod of this.#pods.values())
        if (pod.nodeName === nodeName && pod.ip.startsWith(network))
          octets.set(pod.uid, Number(pod.ip.slice(network.length)));
      this.#octets.set(nodeName, octets);
    }
    const used = new Set(octets.values());
    let octet = 1;
    while (used.has(octet) && octet < addressesPerNode) octet += 1;
    octets.set(uid, octet);
    return `${network}${octet}`;
  }
}

function keep({ metadata = {}, spec, status }: Pod): Kept {
  const seconds = Number(metadata.annotations?.[exitAfterAnnotation] ?? defaultExitAfterSeconds);
  const named = (containers: readonly coreV1.Container[] = []) =>
    containers.map(({ name, image = '' }) => ({ name, image }));
  return {
    uid: metadata.uid ?? '',
    namespace: metadata.namespace ?? '',
    name: metadata.name ?? '',
    nodeName: spec.nodeName ?? '',
    deleting: metadata.deletionTimestamp !== undefined,
    phase: status?.phase ?? '',
    startedAt: Date.parse(status?.startTime ?? '') || 0,
    ip: status?.podIP ?? '',
    exitAfterMs:
      spec.restartPolicy === 'Always' || spec.restartPolicy === undefined
        ? undefined
        : (Number.isFinite(seconds) && seconds >= 0 ? seconds : defaultExitAfterSeconds) * 1000,
    generation: metadata.generation,
    init: named(spec.initContainers),
    containers: named(spec.containers),
    gates: (spec.readinessGates ?? []).map(({ conditionType }) => conditionType),
  };
}
