import { Informer, keyOf, WorkQueue } from '@keelson/client';
import { type ControllerDefinition, ControllerManager } from '@keelson/controller-kit';
import { type ApiClient, formatTime, isStatusError, type KindDefinition, type KubeObject } from '@keelson/core';
import { type FakeClock, noMetrics, silentLogger } from '@keelson/core/runtime';
import { type coreV1, Event, Pod } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import type { ExecutionContext } from 'ava';
import { startTestPlane, type TestPlane } from './test-plane.ts';

// biome-ignore lint/suspicious/noExplicitAny: controllers of kinds of every type
type Controllers = readonly ControllerDefinition<any>[];

/** What happens to a pod on its node. */
export type PodFate = 'ready' | 'running' | 'pending' | 'failed';

export interface WorkloadPlaneOptions {
  readonly controllers: Controllers;
  /** The node to which a pod is bound; undefined leaves it without one. Default: none is bound. */
  readonly nodeOf?: (pod: Pod) => string | undefined;
  /** Default: every pod becomes ready. */
  readonly fateOf?: (pod: Pod) => PodFate;
  /** Replaces the client of the controllers. */
  readonly wrapClient?: (client: ApiClient) => ApiClient;
  /** Kinds besides the built-in ones. */
  readonly kinds?: readonly KindDefinition[];
}

/** An in-process plane with controllers, a fake clock, and nodes on which pods become ready and end at once. */
export class WorkloadPlane {
  readonly plane: TestPlane;
  readonly clock: FakeClock;
  readonly #options: WorkloadPlaneOptions;
  readonly #pods: Informer<Pod>;
  readonly #queue: WorkQueue;
  #manager: ControllerManager | undefined;
  #closed = false;

  private constructor(plane: TestPlane, options: WorkloadPlaneOptions) {
    if (plane.clock === undefined) throw new Error('the plane has no fake clock');
    this.plane = plane;
    this.clock = plane.clock;
    this.#options = options;
    const context = { clock: this.clock, logger: silentLogger };
    this.#queue = new WorkQueue({
      ...context,
      name: 'nodes',
      workers: 8,
      firstRetryMs: 0,
      work: (key) => this.#sync(key),
    });
    const changed = (_pod: Pod, key: string) => this.#queue.add(key);
    this.#pods = new Informer<Pod>({
      ...context,
      client: plane.client(Pod),
      keep: (pod) => pod,
      handlers: { added: changed, updated: (pod, _before, key) => changed(pod, key) },
    });
  }

  static async start(t: ExecutionContext, options: WorkloadPlaneOptions): Promise<WorkloadPlane> {
    const { kinds = [] } = options;
    const plane = await startTestPlane({ controllers: false, fakeClock: true, kinds });
    const workloads = new WorkloadPlane(plane, options);
    await workloads.#pods.start();
    await workloads.startControllers(options.wrapClient);
    t.teardown(() => workloads.close());
    return workloads;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.stopControllers();
    await this.#queue.stop();
    await this.#pods.stop();
    await this.plane.close();
  }

  async startControllers(wrapClient: (client: ApiClient) => ApiClient = (client) => client): Promise<void> {
    this.#manager = new ControllerManager({
      client: wrapClient(this.plane.api),
      clock: this.clock,
      logger: silentLogger,
      metrics: noMetrics,
      controllers: this.#options.controllers,
    });
    await this.#manager.start();
  }

  async stopControllers(): Promise<void> {
    await this.#manager?.stop();
    this.#manager = undefined;
  }

  objects<T extends KubeObject>(kind: KindDefinition<T>) {
    return this.plane.client(kind).namespace('default');
  }

  async list<T extends KubeObject>(kind: KindDefinition<T>): Promise<T[]> {
    return (await this.objects(kind).list()).items;
  }

  /** The pods that are not being deleted and have not ended. */
  async activePods(): Promise<Pod[]> {
    const pods = await this.list(Pod);
    return pods.filter(({ metadata, status }) => {
      const ended = status?.phase === 'Succeeded' || status?.phase === 'Failed';
      return metadata?.deletionTimestamp === undefined && !ended;
    });
  }

  /** Waits for an event of the object with the reason and message. */
  async recorded(name: string, reason: string, message: RegExp): Promise<void> {
    const isEvent = (event: Event) =>
      event.involvedObject.name === name && event.reason === reason && message.test(event.message ?? '');
    await until(async () => (await this.list(Event)).some(isEvent), `an event ${reason} of ${name}`);
  }

  /** Repeats the decisions about all pods, after what determines them has changed. */
  refresh(): void {
    for (const pod of this.#pods.values()) this.#queue.add(keyOf(pod));
  }

  /** Waits until the object meets the condition, and advances the time by `advanceMs` at each attempt. */
  async reaches<T extends KubeObject>(
    kind: KindDefinition<T>,
    name: string,
    condition: (object: T) => boolean,
    { advanceMs = 0, what = `${kind.kind} ${name} meets the condition` } = {},
  ): Promise<T> {
    let last: T | undefined;
    try {
      return await until(
        async () => {
          if (advanceMs > 0) this.clock.advance(advanceMs);
          last = await this.objects(kind).get(name);
          return condition(last) ? last : undefined;
        },
        what,
        60_000,
      );
    } catch (error) {
      throw new Error(`${what}: last state ${JSON.stringify(last)}`, { cause: error });
    }
  }

  /** Writes the status of a pod. */
  async setStatus(name: string, status: coreV1.PodStatus): Promise<void> {
    await this.objects(Pod).patchSubresource(name, 'status', 'merge', { status });
  }

  /** Does what nodes do with a pod: binds it, reports its state, and removes it when it is being deleted. */
  async #sync(key: string): Promise<undefined> {
    const pod = this.#pods.get(key);
    if (pod === undefined) return;
    const { name = '', namespace = '' } = pod.metadata ?? {};
    const pods = this.plane.client(Pod).namespace(namespace);
    try {
      if (pod.metadata?.deletionTimestamp !== undefined) await pods.delete(name, { gracePeriodSeconds: 0 });
      else if (!pod.spec.nodeName && this.#options.nodeOf?.(pod) !== undefined) {
        const target = { kind: 'Node', name: this.#options.nodeOf(pod) ?? '' };
        await pods.createSubresource(name, 'binding', { metadata: { name }, target } as KubeObject);
      } else await this.#report(pod, pods);
    } catch (error) {
      if (!isStatusError(error)) throw error;
    }
  }

  async #report(pod: Pod, pods: ReturnType<TestPlane['client']>): Promise<void> {
    const fate = this.#options.fateOf?.(pod) ?? 'ready';
    const ready = pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
    const phase = fate === 'pending' ? 'Pending' : fate === 'failed' ? 'Failed' : 'Running';
    if (pod.status?.phase === phase && ready === (fate === 'ready')) return;
    if (pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded') return;
    await pods.patchSubresource(pod.metadata?.name ?? '', 'status', 'merge', {
      status: {
        phase,
        conditions: [
          {
            type: 'Ready',
            status: fate === 'ready' ? 'True' : 'False',
            lastTransitionTime: formatTime(new Date(this.clock.now())),
          },
        ],
      },
    });
  }
}

/** A pod template of one container with the labels and the image. */
export function template(labels: Record<string, string>, image = 'app:1') {
  return { metadata: { labels }, spec: { containers: [{ name: 'main', image }] } };
}
